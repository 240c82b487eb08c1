package redis

import (
	"context"
	"strings"
	"time"

	"urlserver/docindex"
)

const outcomeBatch = 1000 // outcomes of one round trip

// Outcomes is [docindex.Source.Outcomes]. The outcome of an attempt changes nothing if the document
// is scheduled for later: a Put has updated the document since it was handed out.
func (s *Store) Outcomes(ctx context.Context, o *docindex.Outcomes) error {
	err := s.each(ctx, o, outcomeScript, func(out *docindex.Outcome) []string {
		again := ""
		if out.Again > 0 {
			again = dueOf(min(out.Again, maxSeconds))
		}
		args := []string{
			decimal(int64(min(int(out.Kind), docindex.Kinds))), flag(out.Kind.OfAttempt()),
			statusOf(out), endedAt(out),
			decimal(out.Pause.Milliseconds()), decimal(out.Gap.Milliseconds()),
			decimal(int64(out.Attempts)), again, string(out.Metadata),
		}
		// without the expiry, which an outcome does not change
		return append(args, membershipOf(out.Metadata, out.URL)[:2]...)
	})
	if err == nil {
		s.released(o)
	}
	return err
}

// statusOf formats the status of an outcome for the script.
func statusOf(out *docindex.Outcome) string {
	if out.NoStatus {
		return "-1"
	}
	return decimal(int64(max(0, out.Status)))
}

// endedAt formats the time of an outcome for the script.
func endedAt(out *docindex.Outcome) string {
	if out.At.IsZero() {
		return ""
	}
	return decimal(max(1, out.At.Unix()))
}

// Pause is [docindex.Pauser.Pause].
func (s *Store) Pause(ctx context.Context, o *docindex.Outcomes) error {
	var args [shards][]string
	for i := range o.Len() {
		out := o.At(i)
		if host := hostOf(string(out.URL)); host != "" {
			shard := shardOf(host)
			args[shard] = append(args[shard], "pause", decimal(out.Pause.Milliseconds()),
				decimal(out.Gap.Milliseconds()), host)
		}
	}
	_ = s.updateHosts(ctx, args) // the heartbeat repeats it
	return ctx.Err()
}

const mostPaused = 10_000 // hosts of a shard that EachPause visits

// EachPause is [docindex.Pauser.EachPause]. It also visits hosts that other daemons have learned
// of since this store was opened.
func (s *Store) EachPause(ctx context.Context, visit func(host []byte, left time.Duration)) error {
	answers, err := s.everywhere(ctx, pausedScript, decimal(mostPaused))
	for _, a := range answers {
		found := list(a.value)
		for i := 0; i+1 < len(found); i += 2 {
			visit([]byte(text(found[i])), time.Duration(integer(text(found[i+1])))*time.Millisecond)
		}
	}
	return err
}

// Return is [docindex.Returner.Return].
func (s *Store) Return(ctx context.Context, o *docindex.Outcomes) error {
	err := s.each(ctx, o, returnScript, func(*docindex.Outcome) []string { return nil })
	if err == nil {
		s.released(o)
	}
	return err
}

// each runs a script for the document of each outcome. more returns the script's further arguments.
func (s *Store) each(ctx context.Context, o *docindex.Outcomes, script *script,
	more func(*docindex.Outcome) []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for from := 0; from < o.Len(); from += outcomeBatch {
		var ids []string
		for i := from; i < min(from+outcomeBatch, o.Len()); i++ {
			ids = append(ids, string(o.At(i).DocID))
		}
		places, err := s.find(ctx, ids)
		if err != nil {
			return err
		}
		var todo []ending
		for j, w := range places {
			if w.known() {
				out := o.At(from + j)
				todo = append(todo, ending{out, w, string(out.URL)})
			}
		}
		for len(todo) > 0 {
			if todo, err = s.endSome(ctx, todo, script, more); err != nil {
				return err
			}
		}
	}
	return nil
}

// ending is an outcome that is being reported.
type ending struct {
	out docindex.Outcome
	at  where
	url string // that its document has to have; "": any
}

// endSome runs the script once. It returns the outcomes to repeat: their documents have another
// form of the URL.
func (s *Store) endSome(ctx context.Context, todo []ending, script *script,
	more func(*docindex.Outcome) []string) (again []ending, err error) {
	var args [shards][]string
	var at [shards][]int
	first := s.places(placesOfOne * len(todo))
	for i := range todo {
		e := &todo[i]
		args[e.at.shard] = append(append(args[e.at.shard], decimal(first+int64(placesOfOne*i)), e.at.queue,
			e.at.hash, e.url), more(&e.out)...)
		at[e.at.shard] = append(at[e.at.shard], i)
	}
	answers, err := s.unbroken(ctx, opsOf(script, args[:], nil))
	for _, a := range answers {
		for j, m := range list(a.value) {
			e := todo[at[a.shard][j]]
			if stored := text(m); m.IsString() && stored != e.url && e.out.IsOf([]byte(stored)) {
				e.url = stored
				again = append(again, e)
			}
		}
	}
	return again, err
}

// sendDeferred applies the updates that scripts returned for hosts of other shards.
func (s *Store) sendDeferred(ctx context.Context, answers []answer) {
	var args [shards][]string
	for _, a := range answers {
		for _, m := range a.deferred {
			parts := list(m)
			if len(parts) < 4 {
				continue
			}
			host := hostOf(text(parts[1]))
			shard := shardOf(host)
			switch {
			case host == "":
			case text(parts[0]) == "pause":
				args[shard] = append(args[shard], "pause", text(parts[2]), text(parts[3]), host)
			case strings.HasPrefix(text(parts[0]), "gone"):
				args[shard] = append(args[shard], text(parts[0]), text(parts[2]), text(parts[3]), host)
			case len(parts) == 5:
				args[shard] = append(args[shard], text(parts[4]), text(parts[2]), text(parts[3]), host)
			}
		}
	}
	_ = s.updateHosts(ctx, args) // the heartbeat repeats it
}

// maxDeferred is how many arguments of failed updates the store keeps for a shard, four a claim.
// Other claims end with their leases, or with this daemon's.
const maxDeferred = 20_000

// updateHosts ends claims on hosts and sets their pauses. The heartbeat repeats updates that fail:
// ending a claim twice changes nothing, and a pause that is set late ends later.
func (s *Store) updateHosts(ctx context.Context, args [shards][]string) error {
	ops := opsOf(unclaimScript, args[:], nil)
	if len(ops) == 0 {
		return nil
	}
	answers := s.run(ctx, ops)
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for i, a := range answers {
		if a.err == nil {
			continue
		}
		errs = append(errs, a.err)
		if o := ops[i]; len(s.deferredUpdates[o.shard])+len(o.args) <= maxDeferred {
			s.deferredUpdates[o.shard] = append(s.deferredUpdates[o.shard], o.args...)
		}
	}
	return joined(errs)
}

// retryDeferred repeats the updates that failed.
func (s *Store) retryDeferred(ctx context.Context) {
	s.mu.Lock()
	deferredUpdates := s.deferredUpdates
	s.deferredUpdates = [shards][]string{}
	s.mu.Unlock()
	_ = s.updateHosts(ctx, deferredUpdates) // the next heartbeat repeats it
}

// hostOf is the host of a URL in the shards' keys; "" if it has none.
func hostOf(url string) string { return hostName(string(docindex.HostOf([]byte(url)))) }
