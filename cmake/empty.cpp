// Keeps a library without sources of its own yet legal.
