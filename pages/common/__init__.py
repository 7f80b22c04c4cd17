"""What all pages share: the frame, the caches, and parts of a page."""
