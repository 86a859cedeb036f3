"""Config providers: settings that name a secret, `${file:/path:key}`, instead of holding it."""
