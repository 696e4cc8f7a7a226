"""The page of one run or of several: one HTML file that opens from disk and needs no network."""
