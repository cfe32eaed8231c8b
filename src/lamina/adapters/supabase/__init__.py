"""Memories in a Supabase project, reached over its HTTP API."""

from lamina.adapters.supabase.adapter import SupabaseAdapter

__all__ = ["SupabaseAdapter"]
