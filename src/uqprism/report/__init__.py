"""Pictures and pages that show what measures and tasks found; they draw what they are given and compute nothing."""
