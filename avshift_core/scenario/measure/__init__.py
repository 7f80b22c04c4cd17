"""X -> ell(X), categories and readable attributes, from the native-rate states."""
