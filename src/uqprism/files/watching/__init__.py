"""Files under watch: rows of files in batches, and a state on disk from which any run goes on."""
