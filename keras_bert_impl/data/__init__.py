"""Task files to examples to batches."""
