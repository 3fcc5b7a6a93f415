"""Files that survive a crash: the home folder, atomic writes, content-addressed caches, the document store."""
