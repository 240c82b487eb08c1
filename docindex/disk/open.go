package disk

import (
	"encoding/binary"
	"fmt"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"urlserver/docindex"
)

// version is the version of the rows' layout. The program reads rows of oldVersion and later as
// they are. It refuses a store of any other version.
const (
	version = 7
	// without crawls; 2: without purged partitions; 3: documents' names do not contain owners; 4:
	// documents' rows do not contain the time and the status of the last outcome; 5: documents have
	// no unique, payload and depth; 6: no rows find, order and count queues
	oldVersion = 1
)

// Open opens the store in a folder. It makes the folder and the store if there is none. Open takes
// time in proportion to the number of leased URLs, of queues with settings or with documents of
// crawls, and after a crash of queues that the last commits changed. The first Open of a store that
// an older version wrote takes some µs a queue.
func Open(cfg Config) (*Store, error) {
	s := &Store{
		cfg: cfg, closing: make(chan struct{}),
		journal: journal{most: maxJournal}, crawls: newCrawls(),
		known: newKnownNames(), clearing: newClearing(),
	}
	s.base.Init((*body)(s), s.crawls.stats)
	s.Contract = s.base.Contract()
	s.merging = newCompactions()
	if err := makePrivate(cfg.Path); err != nil {
		return nil, fmt.Errorf("docindex: %w", err)
	}
	var err error
	if s.space, err = newSpace(cfg.Path, s.closing); err != nil {
		return nil, fmt.Errorf("docindex: %w", err)
	}
	s.memtables = newMemtableFilter(s.space.table)
	db, err := openDB(cfg.Path, options(s.space, &logger{log: cfg.Log, fatal: s.fatal}, s.merging))
	if err != nil {
		return nil, fmt.Errorf("docindex: %w", err)
	}
	s.db = db
	if err := s.load(); err != nil {
		s.cold.counting.end()
		db.Close()
		return nil, fmt.Errorf("docindex: %s: %w", cfg.Path, err)
	}
	s.helpers.Go(s.countNowAndThen)
	s.helpers.Go(s.dropPauses)
	s.merging.begin()
	s.helpers.Go(s.clearNowAndThen)
	if cfg.Sync == Interval {
		s.helpers.Go(s.syncNowAndThen)
	}
	return s, nil
}

// makePrivate makes a folder that only its owner can use. If the folder exists, makePrivate removes
// the permissions of all others. URLs show what somebody is interested in, so nobody else may read
// them.
func makePrivate(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("%s cannot be opened as an index: %w; choose another folder", path, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return err
	}
	if err := os.Chmod(path, info.Mode().Perm()&0o700); err != nil {
		return fmt.Errorf("%s is open to others than its owner, and that cannot be changed: %w; run as "+
			"its owner, or choose another folder", path, err)
	}
	return nil
}

// syncNowAndThen syncs Pebble's log each syncInterval, if there were commits since, until the store
// is closed.
func (s *Store) syncNowAndThen() {
	tick := time.NewTicker(syncInterval)
	defer tick.Stop()
	for {
		select {
		case <-s.closing:
			return
		case <-tick.C:
		}
		s.base.Mu.Lock()
		no := s.journal.no
		s.base.Mu.Unlock()
		if s.synced.Load() == no {
			continue
		}
		if err := s.db.LogData(nil, pebble.Sync); err != nil {
			s.fatal(err)
		}
		s.synced.Store(no)
	}
}

// load reads all rows that the store keeps in memory.
func (s *Store) load() error {
	now := s.base.Now()
	if err := s.loadVersion(); err != nil {
		return err
	}
	if err := s.loadNotes(); err != nil {
		return err
	}
	served, err := s.loadMeta(now)
	if err != nil {
		return err
	}
	if err := s.loadCold(now, served); err != nil {
		return damaged(err)
	}
	l := loading{s: s, now: now, changes: map[uint32][]queueChange{}}
	for _, step := range []struct {
		kind byte
		do   func(key, value []byte) error
	}{
		{journalRow, l.journal}, {totalRow, l.crawlTotals}, {setRow, l.setQueue}, {presetRow, l.preset},
		{crawlRow, l.crawl}, {partitionRow, l.partition}, {purgedRow, l.purgedPartition},
		{leaseBatchRow, l.leaseBatch}, {crawlSettingsRow, l.crawlSettings},
		{hostOverrideRow, l.hostOverride}, // after the leases, which would count as new requests to a host with a delay
	} {
		if err := s.each(step.kind, step.do); err != nil {
			return damaged(err)
		}
		switch step.kind {
		case journalRow:
			if err = l.upgrade(); err == nil {
				s.cold.counting = counting{rows: s.db.NewSnapshot(), next: []byte{wakeRow}, from: now,
					loaded: map[uint32]struct{}{}}
			}
		case totalRow:
			s.base.Sched.CrawlsRestored()
			err = l.changed()
		}
		if err != nil {
			return damaged(err)
		}
	}
	return l.finish()
}

// loadCold prepares for queues that are not in memory.
func (s *Store) loadCold(now, served int64) error {
	memory := s.cfg.Memory
	if memory == 0 {
		memory = DefaultMemory
	}
	s.cold.evictor = evictor{sched: s.base.Sched, queues: &s.queues,
		budget: memory / 3 * 2} // the garbage collector takes the rest
	s.cold.totals = map[uint32]struct{}{}
	s.cold.openedAt, s.cold.served = now, served
	s.base.Sched.KeepCold((*cold)(s))
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{pauseRow}, UpperBound: []byte{queueRow + 1}})
	if err != nil {
		return err
	}
	defer it.Close()
	s.cold.hasPauses = it.First() && it.Key()[0] == pauseRow
	if it.Last() && it.Key()[0] == queueRow && len(it.Key()) == 1+4 {
		s.globals.queueNo = binary.BigEndian.Uint32(it.Key()[1:])
	}
	return it.Error()
}

func damaged(err error) error {
	return fmt.Errorf("damaged: %w; put back a copy of the folder, or move it away to begin with an empty index", err)
}

// each calls do with each row of a kind, in key order. do must not keep the slices.
func (s *Store) each(kind byte, do func(key, value []byte) error) error {
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{kind}, UpperBound: []byte{kind + 1}})
	if err != nil {
		return err
	}
	defer it.Close()
	for it.First(); it.Valid(); it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return err
		}
		if err := do(it.Key(), value); err != nil {
			return fmt.Errorf("row %.40q: %w", it.Key(), err)
		}
	}
	return it.Error()
}

// loadVersion reads the version row, which each store has. It writes the row if the database is
// new.
func (s *Store) loadVersion() error {
	value, err := s.get(metaKey(metaVersion))
	if err != nil {
		return damaged(err)
	}
	if value == nil {
		return s.newStore()
	}
	r := reader{b: value}
	v := r.uint()
	if v < oldVersion || v > version || r.bad {
		return fmt.Errorf("it is of version %d, and this program reads version %d: run the program that "+
			"wrote it, or choose another folder", v, version)
	}
	copy(s.namer.key[:], r.bytes(uint64(len(s.namer.key))))
	copy(s.namer.mark[:], r.bytes(uint64(len(s.namer.mark))))
	if r.bad {
		return damaged(errRow)
	}
	s.cold.upgrades = v < version
	return nil
}

func (s *Store) newStore() error {
	it, err := s.db.NewIter(nil)
	if err != nil {
		return err
	}
	used := it.First()
	if err := it.Close(); err != nil {
		return err
	}
	if used {
		return fmt.Errorf("it is a database of something else; choose another folder")
	}
	s.namer = newDocNamer()
	return s.writeVersion()
}

func (s *Store) writeVersion() error {
	value := binary.AppendUvarint(nil, version)
	value = append(append(value, s.namer.key[:]...), s.namer.mark[:]...)
	return s.db.Set(metaKey(metaVersion), value, pebble.Sync)
}

// loadMeta reads the rows that belong to the whole store. If the slots were in use shortly before
// the restart, served is now: all queues count as served at the slots then. Otherwise served is 0,
// and each queue's own row counts.
func (s *Store) loadMeta(now int64) (served int64, err error) {
	for _, word := range []string{metaSlots, metaDelay, metaPassive, metaOutOfScope} {
		value, err := s.get(metaKey(word))
		if err != nil {
			return 0, damaged(err)
		}
		if value == nil {
			continue
		}
		r := reader{b: value}
		switch word {
		case metaSlots:
			if r.int() > now-slotMarkLast {
				served = now
			}
		case metaDelay:
			s.base.Sched.SetDefaultDelay(r.int())
		case metaPassive:
			s.base.Inactive = true
		case metaOutOfScope:
			s.globals.outcomes[docindex.OutOfScope] = int(r.uint())
		}
		if r.bad {
			return 0, damaged(errRow)
		}
	}
	return served, nil
}
