"""The model's view of a session, through the official MCP client: argv[1:] starts the server."""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main() -> None:
    server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:], env=None)
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        said = {}
        for name, arguments in json.load(sys.stdin):
            result = await session.call_tool(name, arguments)
            said[name] = {"error": bool(result.is_error), "text": result.content[0].text}
        print(json.dumps({"tools": sorted(tools), "said": said}))


asyncio.run(main())
