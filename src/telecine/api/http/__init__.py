"""What every route shares: context, authentication, errors, limits and middleware."""
