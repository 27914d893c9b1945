-- Draws operations for sysbench: each event is a statement and a transaction. Before this text come the numbers of the
-- workload: records, spacing, missing, shares, value, per_range, and those of Zipf's law, or nil.

local texts = {
  "SELECT v FROM t WHERE k = ?",
  "SELECT v FROM t WHERE k = ?",
  "UPDATE t SET v = " .. value .. " WHERE k = ?",
  "REPLACE INTO t VALUES (?, " .. value .. ")",
  "SELECT v FROM t WHERE k >= ? ORDER BY k LIMIT " .. per_range,
}

-- Popular records are strewn over the table: each this far from the next, modulo their number. A prime.
local stride = 15485863

local function share()
  return sysbench.rand.uniform(0, 4294967294) / 4294967295
end

-- By Gray's method, as the benchmarks' other clients.
local function rank()
  local drawn = share()
  if not zipf then return math.floor(drawn * records) end
  if drawn * zipf.zeta < 1 then return 0 end
  if drawn * zipf.zeta < zipf.zeta_two then return 1 end
  return math.min(math.floor(records * (zipf.eta * drawn - zipf.eta + 1) ^ zipf.alpha), records - 1)
end

-- From the record's own key to the one that is meant: keys from `missing` on are never inserted.
local function own() return 0 end
local offsets = {
  own,
  function() return missing + math.floor(share() * missing) end,
  own,
  function() return 1 + math.floor(share() * (missing - 1)) end,
  own,
}

function thread_init()
  -- All are global: a connection that is collected closes itself.
  connection = sysbench.sql.driver():connect()
  statements, keys = {}, {}
  for place, text in ipairs(texts) do
    statements[place] = connection:prepare(text)
    keys[place] = statements[place]:bind_create(sysbench.sql.type.BIGINT)
    statements[place]:bind_param(keys[place])
  end
end

function event()
  local remaining, place = share(), 1
  while place < #shares and remaining >= shares[place] do
    remaining = remaining - shares[place]
    place = place + 1
  end
  keys[place]:set(rank() * stride % records * spacing + offsets[place]())
  statements[place]:execute()
end
