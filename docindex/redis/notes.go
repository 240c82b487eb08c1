package redis

import (
	"context"
	"strings"

	"github.com/redis/rueidis"

	"urlserver/docindex"
)

// roundsKey is a hash in the first shard: crawl ID → the note with the rounds of its domains.
const roundsKey = ":rounds"

// KeepNotes is [docindex.Notes.KeepNotes]. Redis' memory is for URLs: it keeps [docindex.RoundNotes] alone.
func (s *Store) KeepNotes(ctx context.Context, notes []docindex.Note) error {
	var set []docindex.Note
	for _, n := range notes {
		if crawl, ok := strings.CutPrefix(n.Name, docindex.RoundNotes); ok && len(n.Text) <= docindex.MaxNote {
			set = append(set, docindex.Note{Name: crawl, Text: n.Text})
		}
	}
	if len(set) == 0 {
		return ctx.Err()
	}
	c, err := s.connected(ctx)
	if err != nil {
		return err
	}
	var commands []rueidis.Completed
	for _, n := range set {
		if len(n.Text) == 0 {
			commands = append(commands, c.B().Hdel().Key(s.bases[0]+roundsKey).Field(n.Name).Build())
		} else {
			commands = append(commands, c.B().Hset().Key(s.bases[0]+roundsKey).FieldValue().
				FieldValue(n.Name, rueidis.BinaryString(n.Text)).Build())
		}
	}
	for _, result := range c.DoMulti(ctx, commands...) {
		if err := result.Error(); err != nil {
			return s.wrap(err)
		}
	}
	return nil
}

// deleteRounds deletes the note with the rounds of a crawl's domains. A key of a wrong type has no notes.
func (s *Store) deleteRounds(ctx context.Context, crawl string) error {
	s.budgets.forget(crawl)
	c, err := s.connected(ctx)
	if err != nil {
		return err
	}
	err = c.Do(ctx, c.B().Hdel().Key(s.bases[0]+roundsKey).Field(crawl).Build()).Error()
	if err == nil || isWrongType(err) {
		return nil
	}
	return s.wrap(err)
}

// FindNotes is [docindex.Notes.FindNotes]. It finds none.
func (s *Store) FindNotes(ctx context.Context, _ []string, _ func(i int, text []byte)) error {
	return ctx.Err()
}

// EachNote is [docindex.Notes.EachNote]. A key of a wrong type has no notes.
func (s *Store) EachNote(ctx context.Context, prefix string, visit func(name string, text []byte)) error {
	if !strings.HasPrefix(docindex.RoundNotes, prefix) && !strings.HasPrefix(prefix, docindex.RoundNotes) {
		return ctx.Err()
	}
	c, err := s.connected(ctx)
	if err != nil {
		return err
	}
	all, err := c.Do(ctx, c.B().Hgetall().Key(s.bases[0]+roundsKey).Build()).AsStrMap()
	if failure, is := rueidis.IsRedisErr(err); is && strings.HasPrefix(failure.Error(), "WRONGTYPE") {
		return nil
	}
	if err != nil {
		return s.wrap(err)
	}
	for crawl, text := range all {
		if name := docindex.RoundNotes + crawl; strings.HasPrefix(name, prefix) {
			visit(name, []byte(text))
		}
	}
	return nil
}
