"""Long work in processes of its own: asked for twice, done once; progress as it comes; cancelled at once."""
