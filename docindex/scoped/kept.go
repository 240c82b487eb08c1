package scoped

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"urlserver/docindex"
	"urlserver/internal/scope"
)

// Names of notes, each before a crawl ID.
const (
	refusedNotes = "crawl refused "    // how many documents each rule refused, and how many were dropped
	roundNotes   = docindex.RoundNotes // domains over their budget, as JSON
)

const (
	keepStep = 10 * time.Second // how often the notes are written
	keepMost = 5 * time.Second  // how long the last time may take
)

// restore reads the notes that an earlier process has written about crawls.
func (s *Store) restore(ctx context.Context) error {
	texts := map[string]string{}
	for _, prefix := range []string{refusedNotes, roundNotes} {
		err := s.Store.EachNote(ctx, prefix, func(name string, text []byte) { texts[name] = string(text) })
		if err != nil {
			return err
		}
	}
	var all []docindex.Round
	for name, text := range texts {
		if id, ok := strings.CutPrefix(name, refusedNotes); ok {
			if c := s.find([]byte(id)); c != nil {
				c.tally.addRefused(text)
			}
		}
		if id, ok := strings.CutPrefix(name, roundNotes); ok {
			var rounds []docindex.Round
			_ = json.Unmarshal([]byte(text), &rounds) // without them rounds begin anew
			for _, r := range rounds {
				r.Crawl = id
				all = append(all, r)
			}
		}
	}
	s.Store.RestoreRounds(all)
	s.kept = texts
	return nil
}

// keep writes the notes about crawls for a later process, as far as they have changed. Only Run calls it.
func (s *Store) keep(ctx context.Context) error {
	now := s.noteRounds()
	s.mu.RLock()
	for id, c := range s.crawls {
		if text := c.tally.refusedText(); text != "" {
			now[refusedNotes+id] = text
		}
	}
	s.mu.RUnlock()
	var notes []docindex.Note
	for name, text := range now {
		if s.kept[name] != text {
			notes = append(notes, docindex.Note{Name: name, Text: []byte(text)})
		}
	}
	for name, text := range s.kept {
		if now[name] == "" && text != "" {
			notes = append(notes, docindex.Note{Name: name})
		}
	}
	if len(notes) == 0 {
		return nil
	}
	err := s.Store.KeepNotes(ctx, notes)
	if err == nil {
		s.kept = now
	}
	return err
}

// noteRounds returns the notes of domains over their budget. A crawl's note has those that are to
// wait longest, if not all fit.
func (s *Store) noteRounds() map[string]string {
	crawls := map[string][]*docindex.Round{}
	for _, r := range s.Store.Rounds() {
		crawls[r.Crawl] = append(crawls[r.Crawl], &r)
	}
	notes := map[string]string{}
	for id, list := range crawls {
		slices.SortFunc(list, func(a, b *docindex.Round) int {
			if a.Round != b.Round {
				return int(b.Round) - int(a.Round)
			}
			return strings.Compare(a.Domain, b.Domain)
		})
		text := []byte("[")
		for _, r := range list {
			one, _ := json.Marshal(r) // strings and numbers always can be
			if len(text)+len(one)+len(",]") > docindex.MaxNote {
				break
			}
			if len(text) > 1 {
				text = append(text, ',')
			}
			text = append(text, one...)
		}
		notes[roundNotes+id] = string(append(text, ']'))
	}
	return notes
}

// keepLast is keep at the end of Run.
func (s *Store) keepLast(ctx context.Context, log zerolog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepMost)
	defer cancel()
	if err := s.keep(ctx); err != nil {
		log.Warn().Err(err).Msg("docindex: counts of crawls, and which domains are over their budget, are not " +
			"kept for the next start")
	}
}

// droppedWord stands in a note before how many documents were dropped.
const droppedWord = "dropped"

// refusedText returns how many documents each rule refused, and how many were dropped; "": none.
func (t *tally) refusedText() string {
	var text []byte
	for rule := range t.refused {
		if n := t.refused[rule].Load(); n > 0 {
			text = append(append(text, scope.Rule(rule).String()...), '=')
			text = append(strconv.AppendUint(text, n, 10), ' ')
		}
	}
	if n := t.dropped.Load(); n > 0 {
		text = fmt.Appendf(text, "%s=%d ", droppedWord, n)
	}
	return string(text)
}

func (t *tally) addRefused(text string) {
	for _, one := range strings.Fields(text) {
		word, number, _ := strings.Cut(one, "=")
		n, _ := strconv.ParseUint(number, 10, 64) // what is no number counts nothing
		if word == droppedWord {
			t.dropped.Add(n)
		}
		for rule := range t.refused {
			if scope.Rule(rule).String() == word {
				t.refused[rule].Add(n)
			}
		}
	}
}
