"""Training text: from the files of a Debian package to token ids."""
