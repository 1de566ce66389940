"""The data sets: each module registers its own under their names, and `uqprism.paper.data.load` finds every module here."""
