package redis

import (
	"context"
	"reflect"
	"testing"

	"urlserver/docindex"
)

// auditText recounts what crawls have from all documents of a shard, and tells where the counts
// that are kept say something else.
const auditText = `
local wrong, sum = {}, {}
local function check(what, is, want)
  if is ~= want then wrong[#wrong + 1] = what .. ' is ' .. is .. ', recounted ' .. want end
end
local function checkHash(key, want)
  local is = {}
  local all = call('HGETALL', key)
  for i = 1, #all, 2 do
    is[all[i]] = true
    check(key .. ' ' .. all[i], tonumber(all[i + 1]), want[all[i]] or 0)
    if tonumber(all[i + 1]) == 0 then wrong[#wrong + 1] = key .. ' keeps a zero' end
  end
  for field, n in pairs(want) do
    if not is[field] then check(key .. ' ' .. field, 0, n) end
  end
end

for _, key in ipairs(call('KEYS', base .. ':b:*')) do
  local q = queue(string.match(key, ':b:(%d+)$'))
  local all = call('HGETALL', key)
  for i = 2, #all, 2 do
    local part = partOf(q, cmsgpack.unpack(all[i]))
    if part then countPart(q, part, 1) end
  end
end
local names = call('HGETALL', base .. ':k')
for i = 1, #names, 2 do
  local c = crawlOf(tonumber(names[i + 1]))
  local key = crawlKey(c.no)
  check(key .. ' name', crawlName(c), names[i])
  for _, field in ipairs({ LINED, ATSLOTS, ATCALLS, FINISHED, PURGED }) do
    check(key .. ' ' .. field, tonumber(call('HGET', key, field) or 0), c.by[field] or 0)
    bump(sum, field, c.by[field] or 0)
  end
  checkHash(key .. ':d', c.levels)
  checkHash(key .. ':q', c.queues)
  checkHash(key .. ':o', c.owners)
  check(key .. ' in its index', call('ZSCORE', base .. ':kn', names[i]) or 'nowhere', '0')
  if not holds(c.no) and not whyOf(names[i]) and call('HEXISTS', key, 'till') == 0 then wrong[#wrong + 1] = key .. ' is of nothing' end
  c.checked = true
end
for no, c in pairs(crawls) do
  if not c.checked then wrong[#wrong + 1] = 'documents are of crawl ' .. no .. ', which is not there' end
end
check('names', call('ZCARD', base .. ':kn'), #names / 2)
for field, n in pairs(sum) do check('all ' .. field, tonumber(call('HGET', base .. ':kt', field) or 0), n) end
local kept = #call('KEYS', base .. ':k:*')
for i = 2, #names, 2 do kept = kept - call('EXISTS', crawlKey(names[i]), crawlKey(names[i]) .. ':d', crawlKey(names[i]) .. ':q', crawlKey(names[i]) .. ':o') end
check('keys of crawls that are not there', kept, 0)
return { wrong, {}, 0, {}, 0 }
`

func auditScript() *script { return newScript(func() string { return auditText }) }

// checkCounts compares what is counted of crawls with the documents.
func checkCounts(t *testing.T, s *Store) {
	t.Helper()
	answers, err := s.everywhere(t.Context(), auditScript())
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range answers {
		for _, m := range list(a.value) {
			t.Errorf("shard %d: %s", a.shard, text(m))
		}
	}
}

// audited is a store whose counts are compared with its documents now and then.
type audited struct {
	*Store
	t       *testing.T
	surveys int
}

// audit audits a store that is not in a bubble.
func audit(t *testing.T, s docindex.Store) docindex.Store {
	if plain, ok := s.(*Store); ok {
		return &audited{Store: plain, t: t}
	}
	return s
}

// ReportPending is called after each step of a random test.
func (a *audited) ReportPending(ctx context.Context, id docindex.CrawlID, domains int,
	away *docindex.Outcomes) (docindex.PendingReport, error) {
	if a.surveys++; a.surveys%25 == 0 {
		checkCounts(a.t, a.Store)
		checkSnapshot(a.t, a.Store)
	}
	return a.Store.ReportPending(ctx, id, domains, away)
}

// checkSnapshot compares what a daemon knows of an application with what it reads anew.
func checkSnapshot(t *testing.T, s *Store) {
	t.Helper()
	app := crawlID("")
	is, err := s.ReportPending(t.Context(), app, 1000, nil)
	s.mu.Lock()
	snapshots := s.snapshots
	s.snapshots = map[string]*snapshot{}
	s.mu.Unlock()
	want, err2 := s.ReportPending(t.Context(), app, 1000, nil)
	s.mu.Lock()
	s.snapshots = snapshots
	s.mu.Unlock()
	if err != nil || err2 != nil || !reflect.DeepEqual(is, want) {
		t.Errorf("survey is %+v, %v;\nanew it is %+v, %v", is, err, want, err2)
	}
}
