-- SPDX-License-Identifier: Apache-2.0
-- Routes of memcached's proxy over the servers that WARPCACHED_SERVERS names, by the part of a key before its first colon.
-- memcached -o proxy_config=routelib,proxy_arg=routes.lua; SIGHUP reads it again.

local all, half_a, half_b = {}, {}, {}
for address in string.gmatch(os.getenv("WARPCACHED_SERVERS") or error("WARPCACHED_SERVERS names no servers"), "%S+") do
  table.insert(all, address)
end
for number, address in ipairs(all) do
  table.insert(number <= #all // 2 and half_a or half_b, address)
end

settings{
  backend_connect_timeout = 1,
  backend_read_timeout = 2,
  backend_failure_limit = 1, -- a server that fails once is asked again after ...
  backend_retry_waittime = 1, -- ... seconds; until then its requests fail at once
}

-- A ring, so that few keys move where a server is added or taken away. (1.6.38's default form of it has too few points.)
local ring = { dist = mcp.dist_ring_hash, omode = "ketama", hash = mcp.dist_ring_hash.hash }
pools{
  all = { backends = all, options = ring },
  a = { backends = half_a, options = ring },
  b = { backends = half_b, options = ring },
}

routes{
  conf = { mode = "prefix", stop = ":" },
  map = {
    -- Two copies: stored and deleted in both pools, read from the first that answers.
    replicated = cmdmap{
      all = route_allsync{ children = { "a", "b" } },
      get = route_failover{ children = { "a", "b" }, miss = true },
      gets = route_failover{ children = { "a", "b" }, miss = true },
      mg = route_failover{ children = { "a", "b" }, miss = true },
    },
    -- One copy in pool a; in pool b while the key's server of pool a does not answer.
    failover = route_failover{ children = { "a", "b" }, stats = true },
    -- Pool b is new and empty, pool a has the items: what b misses is read from a. Stores go to b alone, and deletes to both.
    -- warpcache-dump and -restore copy the items of a to b meanwhile.
    warmup = cmdmap{
      all = route_direct{ child = "b" },
      get = route_failover{ children = { "b", "a" }, miss = true },
      gets = route_failover{ children = { "b", "a" }, miss = true },
      mg = route_failover{ children = { "b", "a" }, miss = true },
      delete = route_allsync{ children = { "a", "b" } },
      md = route_allsync{ children = { "a", "b" } },
    },
  },
  -- Every other key has one server of all.
  default = route_direct{ child = "all" },
}
