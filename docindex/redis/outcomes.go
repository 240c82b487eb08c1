package redis

import (
	"context"
	"errors"

	"urlserver/docindex"
)

const outcomeBatch = 1000 // of one go

// Outcomes is [docindex.Source.Outcomes] as a Store has it. One that tells how a try ended changes nothing where the
// document is scheduled for later: there was news of it since it was handed out.
func (s *Store) Outcomes(ctx context.Context, o *docindex.Outcomes) error {
	return s.each(ctx, o, outcomeScript, func(out *docindex.Outcome) []string {
		again := ""
		if out.Again > 0 {
			again = dueOf(min(out.Again, maxSeconds))
		}
		args := []string{
			decimal(int64(min(int(out.Kind), docindex.Kinds))), flag(out.Kind.OfAttempt()),
			decimal(out.Pause.Milliseconds()), decimal(out.Gap.Milliseconds()), decimal(int64(out.Attempts)), again, string(out.Metadata),
		}
		return append(args, membershipOf(out.Metadata, out.URL)[:2]...) // when its crawl expires is not for an outcome to say
	})
}

// Return is [docindex.Returner.Return].
func (s *Store) Return(ctx context.Context, o *docindex.Outcomes) error {
	return s.each(ctx, o, returnScript, func(*docindex.Outcome) []string { return nil })
}

// each has a script look at the document of each outcome that has one. more is what it is told beside.
func (s *Store) each(ctx context.Context, o *docindex.Outcomes, script *script, more func(*docindex.Outcome) []string) error {
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

// ending is an outcome on its way.
type ending struct {
	out docindex.Outcome
	at  where
	url string // that its document has to have; "": any
}

// endSome does once what each does. It returns those to be done again, whose documents have another form of their URL.
func (s *Store) endSome(ctx context.Context, todo []ending, script *script, more func(*docindex.Outcome) []string) (again []ending, err error) {
	var args [shards][]string
	var at [shards][]int
	first := s.places(placesOfOne * len(todo))
	for i := range todo {
		e := &todo[i]
		args[e.at.shard] = append(append(args[e.at.shard], decimal(first+int64(placesOfOne*i)), e.at.queue, e.at.hash, e.url), more(&e.out)...)
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

// tidy tells hosts of other shards what scripts left over.
func (s *Store) tidy(ctx context.Context, answers []answer) {
	var args [shards][]string
	for _, a := range answers {
		for _, m := range a.loose {
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
			case len(parts) == 5:
				args[shard] = append(args[shard], text(parts[4]), text(parts[2]), text(parts[3]), host)
			}
		}
	}
	_ = s.tellHosts(ctx, args) // or else the beat does
}

const maxOwed = 20_000 // arguments, four a claim, that wait to be told to hosts of a shard; the rest ends with its lease, or with this daemon's

// tellHosts ends claims on hosts, and tells them what the slots learned of them. What does not get there is told again by the beat: to
// end a claim twice changes nothing, and a pause that is told late is the longer for it.
func (s *Store) tellHosts(ctx context.Context, args [shards][]string) error {
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
		if o := ops[i]; len(s.owed[o.shard])+len(o.args) <= maxOwed {
			s.owed[o.shard] = append(s.owed[o.shard], o.args...)
		}
	}
	return errors.Join(errs...)
}

// tellOwed tells hosts what they have not been told.
func (s *Store) tellOwed(ctx context.Context) {
	s.mu.Lock()
	owed := s.owed
	s.owed = [shards][]string{}
	s.mu.Unlock()
	_ = s.tellHosts(ctx, owed) // or else the next beat does
}

// hostOf is the host of a URL as shards know it; "" where it has none.
func hostOf(url string) string { return hostName(string(docindex.HostOf([]byte(url)))) }
