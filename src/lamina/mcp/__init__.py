"""The MCP server: memories and computed context for agents that speak the Model Context Protocol."""
