"""Results -> plotly figures. They read, never compute; text and background are left to the page's theme."""
