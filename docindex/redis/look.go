package redis

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"urlserver/docindex"
)

const (
	queuesAtOnce = 500 // queues of a shard that one script lists
	listAtOnce   = 64  // queues that are read in one round trip
)

// queueInfo is a queue in a list.
type queueInfo struct {
	shard int
	place int64
	queue string
	key   string
	idle  bool
}

// eachQueue visits the queues of a crawl in the order of their first URLs, until visit returns
// false.
func (s *Store) eachQueue(ctx context.Context, crawl string, visit func(queueInfo) (bool, error)) error {
	var pages [shards][]queueInfo
	var behind [shards]string // where each shard's next page begins; "": there is none
	for i := range behind {
		behind[i] = "-inf"
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := s.fillPages(ctx, crawl, &pages, &behind); err != nil {
			return err
		}
		first := -1
		for i, page := range pages {
			if len(page) > 0 && (first < 0 || page[0].place < pages[first][0].place) {
				first = i
			}
		}
		if first < 0 {
			return nil
		}
		q := pages[first][0]
		pages[first] = pages[first][1:]
		if goOn, err := visit(q); err != nil || !goOn {
			return err
		}
	}
}

// fillPages reads the next page of each shard whose page is empty.
func (s *Store) fillPages(ctx context.Context, crawl string, pages *[shards][]queueInfo, behind *[shards]string) error {
	for {
		var ops []op
		for i := range pages {
			if len(pages[i]) == 0 && behind[i] != "" {
				ops = append(ops, op{i, queuesScript, []string{crawl, behind[i], decimal(queuesAtOnce)}})
			}
		}
		if len(ops) == 0 {
			return nil
		}
		answers, err := s.all(ctx, ops)
		if err != nil {
			return err
		}
		for _, a := range answers {
			parts := list(a.value)
			if len(parts) != 2 {
				return errStrange
			}
			behind[a.shard] = text(parts[0])
			for m := list(parts[1]); len(m) >= 4; m = m[4:] {
				q := queueInfo{a.shard, number(m[0]), text(m[1]), text(m[2]), number(m[3]) == 1}
				pages[a.shard] = append(pages[a.shard], q)
			}
		}
	}
}

// Queues is [docindex.Frontier.Queues].
func (s *Store) Queues(ctx context.Context, crawl []byte, visit func(key []byte, idle bool) bool) error {
	return s.eachQueue(ctx, string(crawl), func(q queueInfo) (bool, error) { return visit([]byte(q.key), q.idle), nil })
}

// List is [docindex.Frontier.List]. Within a queue it goes by the order in which Redis keeps it.
func (s *Store) List(ctx context.Context, scope docindex.Scope, visit func(*docindex.Document) bool) error {
	var some []queueInfo
	goOn := true
	flush := func() (err error) {
		goOn, err = s.listSome(ctx, some, visit)
		some = some[:0]
		return err
	}
	err := s.eachQueueOf(ctx, scope, func(q queueInfo) (bool, error) {
		if some = append(some, q); len(some) < listAtOnce {
			return true, nil
		}
		err := flush()
		return goOn, err
	})
	if err == nil && goOn {
		err = flush()
	}
	return err
}

// eachQueueOf visits the queue, or the queues, of a scope. A queue that the scope names need not
// exist.
func (s *Store) eachQueueOf(ctx context.Context, scope docindex.Scope, visit func(queueInfo) (bool, error)) error {
	if len(scope.Key) == 0 {
		return s.eachQueue(ctx, string(scope.Crawl), visit)
	}
	key := string(scope.Key)
	_, err := visit(queueInfo{shard: shardOf(key), queue: "@" + nameOf(string(scope.Crawl), key), key: key})
	return err
}

// listSome lists queues. It reads their first pages in one round trip.
func (s *Store) listSome(ctx context.Context, queues []queueInfo,
	visit func(*docindex.Document) bool) (goOn bool, err error) {
	ops := make([]op, len(queues))
	for i, q := range queues {
		ops[i] = op{q.shard, listScript, []string{q.queue, "0"}}
	}
	answers, err := s.all(ctx, ops)
	if err != nil {
		return false, err
	}
	for i, a := range answers {
		if goOn, err := s.listOne(ctx, queues[i], a, visit); err != nil || !goOn {
			return goOn, err
		}
	}
	return true, nil
}

// listOne visits the documents of a queue whose first page was read. Redis may list a document
// twice while others are deleted; listOne visits it once.
func (s *Store) listOne(ctx context.Context, q queueInfo, page answer,
	visit func(*docindex.Document) bool) (bool, error) {
	seen := map[string]struct{}{}
	for {
		parts := list(page.value)
		if len(parts) != 2 {
			return false, errStrange
		}
		cursor := text(parts[0])
		for _, m := range list(parts[1]) {
			parts := list(m)
			if len(parts) != documentParts {
				return false, errStrange
			}
			if cursor != "0" || len(seen) > 0 {
				if _, was := seen[text(parts[10])]; was {
					continue
				}
				seen[text(parts[10])] = struct{}{}
			}
			if d := s.documentOf(q.shard, parts); !visit(&d) {
				return false, nil
			}
		}
		if cursor == "0" {
			return true, nil
		}
		if err := ctx.Err(); err != nil {
			return false, err
		}
		var err error
		if page, err = s.one(ctx, q.shard, listScript, q.queue, cursor); err != nil {
			return false, err
		}
	}
}

// Crawls is [docindex.Frontier.Crawls].
func (s *Store) Crawls(ctx context.Context) (all []string, err error) {
	c, err := s.connected(ctx)
	if err != nil {
		return nil, err
	}
	var commands []rueidis.Completed
	for _, base := range s.bases {
		commands = append(commands, c.B().Smembers().Key(base+":crawls").Build())
	}
	known := map[string]bool{}
	for i, r := range c.DoMulti(ctx, commands...) {
		names, err := r.AsStrSlice()
		if isWrongType(err) {
			s.warnBroken(s.bases[i] + ":crawls")
			continue
		}
		if err != nil {
			return nil, s.wrap(err)
		}
		for _, name := range names {
			if !known[name] {
				known[name] = true
				all = append(all, name)
			}
		}
	}
	return all, nil
}

// counted has counts by the scripts' names for them.
type counted map[string]uint64

// count returns the counts of a queue, a crawl, or all crawls.
func (s *Store) count(ctx context.Context, scope *docindex.Scope) (counted, error) {
	args := []string{"all", "", ""}
	ops := make([]op, 0, shards)
	if scope != nil {
		args = []string{"crawl", string(scope.Crawl), string(scope.Key)}
	}
	for i := range shards {
		ops = append(ops, op{i, countScript, args})
	}
	if scope != nil && len(scope.Key) > 0 {
		ops = []op{{shardOf(args[2]), countScript, []string{"queue", args[1], args[2]}}}
	}
	for range maxCatch {
		answers, err := s.all(ctx, ops)
		if err != nil {
			return nil, err
		}
		if !catching(answers) {
			return sum(answers), nil
		}
	}
	return nil, errStrange
}

func sum(answers []answer) counted {
	n := counted{}
	for _, a := range answers {
		if parts := list(a.value); len(parts) == 2 {
			for m := list(parts[1]); len(m) >= 2; m = m[2:] {
				n[text(m[0])] += uint64(max(0, number(m[1])))
			}
		}
	}
	return n
}

// Count is [docindex.Frontier.Count].
func (s *Store) Count(ctx context.Context, scope *docindex.Scope) (docindex.Counts, error) {
	n, err := s.count(ctx, scope)
	if err != nil {
		return docindex.Counts{}, err
	}
	return docindex.Counts{Scheduled: n["1"], InTransit: n["2"], Completed: n["3"], Queues: n["q"], Active: n["a"],
		Later: n["l"]}, nil
}

// Stats is [docindex.Inspector.Stats], of all daemons together. Bytes is the memory that Redis
// uses. If Redis does not answer, it returns the last counts.
func (s *Store) Stats() docindex.StoreStats {
	ctx, cancel := asked()
	defer cancel()
	n, err := s.count(ctx, nil)
	s.mu.Lock()
	client, last := s.client, s.last
	s.mu.Unlock()
	if err != nil || client == nil {
		return last
	}
	st := docindex.StoreStats{
		Scheduled: int(n["1"]), InTransit: int(n["2"]), Completed: int(n["3"]), Hosts: int(n["q"]),
		Bytes: usedMemory(ctx, client),
	}
	for k := range docindex.Kinds {
		st.Outcomes[k] = int(n["k"+strconv.Itoa(k)])
	}
	s.mu.Lock()
	s.last = st
	s.mu.Unlock()
	return st
}

// usedMemory returns the bytes that all masters use.
func usedMemory(ctx context.Context, c rueidis.Client) (bytes int64) {
	for _, node := range c.Nodes() {
		info, err := node.Do(ctx, node.B().Info().Section("memory", "replication").Build()).ToString()
		if err != nil || !strings.Contains(info, "role:master") {
			continue
		}
		_, rest, _ := strings.Cut(info, "used_memory:")
		digits, _, _ := strings.Cut(rest, "\r")
		n, _ := strconv.ParseInt(digits, 10, 64)
		bytes += n
	}
	return bytes
}
