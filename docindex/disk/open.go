package disk

import (
	"encoding/binary"
	"fmt"
	"os"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// version is of the rows' layout. Rows of those before are read as they are; a store of another one
// is refused.
const (
	version    = 4
	oldVersion = 1 // without crawls; 2: without partitions that are over; 3: documents are named by their URLs, whoever owns them
)

// Open opens the store in a folder, or makes it there. It costs time by queues and by what is
// leased, not by URLs.
func Open(cfg Config) (*Store, error) {
	s := &Store{
		cfg: cfg, closing: make(chan struct{}),
		journal: journal{most: maxJournal}, crawls: newCrawls(), byNo: map[uint32]uint32{}, leaseBatches: map[uint64]int{},
		memtables: newMemtableFilter(), clearing: newClearing(),
	}
	s.base.Init((*body)(s), s.crawls.stats)
	s.Contract = s.base.Contract()
	s.space = &space{FS: vfs.Default, path: cfg.Path, closing: s.closing}
	s.merging = newCompactions()
	if err := makePrivate(cfg.Path); err != nil {
		return nil, fmt.Errorf("docindex: %w", err)
	}
	db, err := openDB(cfg.Path, options(s.space, &logger{log: cfg.Log, fatal: s.fatal}, s.merging))
	if err != nil {
		return nil, fmt.Errorf("docindex: %w", err)
	}
	s.db = db
	if err := s.load(); err != nil {
		db.Close()
		return nil, fmt.Errorf("docindex: %s: %w", cfg.Path, err)
	}
	s.merging.begin()
	s.helpers.Go(s.clearNowAndThen)
	if cfg.Sync == Interval {
		s.helpers.Go(s.syncNowAndThen)
	}
	return s, nil
}

// makePrivate makes a folder, or takes it from all but its owner: what it holds tells what somebody
// is interested in.
func makePrivate(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fmt.Errorf("%s cannot be opened as an index: %w; choose another folder", path, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return err
	}
	if err := os.Chmod(path, info.Mode().Perm()&0o700); err != nil {
		return fmt.Errorf("%s is open to others than its owner, and that cannot be changed: %w; run as its owner, or choose another folder", path, err)
	}
	return nil
}

// syncNowAndThen puts on disk what was acknowledged.
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

// load reads all that is kept in memory.
func (s *Store) load() error {
	now := s.base.Now()
	if err := s.loadVersion(); err != nil {
		return err
	}
	served, err := s.loadMeta(now)
	if err != nil {
		return err
	}
	l := loading{s: s, served: served, now: now, queues: map[uint32]*queueRecord{}, since: map[uint32]uint64{}}
	for _, step := range []struct {
		kind byte
		do   func(key, value []byte) error
	}{
		{queueRow, l.queue}, {journalRow, l.journal}, {presetRow, l.preset}, {pauseRow, l.pause}, {crawlRow, l.crawl}, {partitionRow, l.partition}, {purgedRow, l.purgedPartition}, {leaseBatchRow, l.leaseBatch},
		{hostOverrideRow, l.hostOverride}, // behind leases, which are no news of hosts
	} {
		if step.kind == presetRow {
			l.open()
		}
		if err := s.each(step.kind, step.do); err != nil {
			return damaged(err)
		}
	}
	return l.finish()
}

func damaged(err error) error {
	return fmt.Errorf("damaged: %w; put back a copy of the folder, or move it away to begin with an empty index", err)
}

// each calls back with all rows of a kind.
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

// loadVersion reads the row that makes a database a store, or writes it where the database is new.
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
		return fmt.Errorf("it is of version %d, and this program reads version %d: run the program that wrote it, or choose another folder", v, version)
	}
	copy(s.namer.key[:], r.bytes(uint64(len(s.namer.key))))
	copy(s.namer.mark[:], r.bytes(uint64(len(s.namer.mark))))
	if r.bad {
		return damaged(errRow)
	}
	if v < version {
		return s.writeVersion()
	}
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

// loadMeta reads the rows of the whole store. served is when all queues count as served at the
// slots; 0: as they know.
func (s *Store) loadMeta(now int64) (served int64, err error) {
	for _, word := range []string{metaSlots, metaDelay, metaPassive} {
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
		}
		if r.bad {
			return 0, damaged(errRow)
		}
	}
	return served, nil
}
