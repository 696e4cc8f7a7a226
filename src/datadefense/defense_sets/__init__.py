"""Defense sets in folders: read, marked, checked, shown, suggested."""
