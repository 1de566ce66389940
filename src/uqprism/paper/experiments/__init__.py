"""One experiment per figure or table of the paper."""
