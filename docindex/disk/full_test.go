package disk_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	pb "urlserver/api/urlfrontier"
	"urlserver/configs"
	"urlserver/docindex"
	"urlserver/docindex/disk"
	"urlserver/docindex/indextest"
	"urlserver/frontier"
)

// smallDisk mounts a file system of size MiB.
func smallDisk(t *testing.T, size int) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not root: no small disk can be mounted, so a full one is not tried")
	}
	path := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%dm", size), "tmpfs",
		path).CombinedOutput(); err != nil {
		t.Skipf("no small disk can be mounted, so a full one is not tried: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", path).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return path
}

// TestFullDisk fills the disk through the store, then with another file. Then it makes room. A quarter of a
// small disk can be used, too.
func TestFullDisk(t *testing.T) {
	for _, size := range []int{24, 300} {
		t.Run(fmt.Sprint(size, " MiB"), func(t *testing.T) { fullDisk(t, size) })
	}
}

func fullDisk(t *testing.T, size int) {
	path := smallDisk(t, size)
	s, err := disk.Open(disk.Config{Path: filepath.Join(path, "db"), Log: zerolog.New(zerolog.NewTestWriter(t)),
		Fatal: func(err error) { panic(err) }})
	if err != nil {
		t.Fatal(err)
	}
	client := serveFrontier(t, s)
	stored := 0
	for err = error(nil); err == nil && stored < 100_000; stored += 100 {
		err = putLong(t, s, stored, 100)
	}
	stored -= 100
	if !isFull(err) {
		t.Fatalf("Put: %v; want an error that says that the disk is full", err)
	}
	if stored*3500 < size<<20/4 {
		t.Errorf("%d long URLs were stored before the disk was full; want a quarter of %d MiB", stored, size)
	}
	empty := keepFull(t, filepath.Join(path, "filler"))
	// Compactions free room while the filler takes it, so each call may succeed some times.
	untilFull(t, func() error {
		err := putLong(t, s, stored, 1)
		if err == nil {
			stored++
		}
		return err
	}, isFull)
	acked := min(1, untilFull(t, func() error { return ackOf(t, client) }, isFail)) // the same URL each time
	got := untilFull(t, func() error { return getOne(t, client) }, func(err error) bool {
		return status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "make room")
	})
	if n := indextest.Count(t, s, nil); n.Scheduled+n.InTransit != uint64(stored+acked) || n.InTransit != uint64(got) {
		t.Errorf("counts are %+v; want %d documents, %d in transit", n, stored+acked, got)
	}
	empty()
	if err := exec.Command("mount", "-o", "remount,size=600m", path).Run(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond) // the store asks the disk every 50 ms at most
	if err := putLong(t, s, stored, 100); err != nil {
		t.Errorf("put when there is room again: %v", err)
	}
	if err := ackOf(t, client); err != nil {
		t.Errorf("%v when there is room again; want OK", err)
	}
	err = io.EOF
	for began := time.Now(); errors.Is(err, io.EOF) && time.Since(began) < time.Minute; { // hosts have a delay
		err = getOne(t, client)
	}
	if err != nil {
		t.Errorf("GetURLs when there is room again: %v", err)
	}
	if err := errors.Join(s.Check(), s.Close()); err != nil {
		t.Error(err)
	}
	s = open(t, filepath.Join(path, "db"), disk.Batch)
	if n := indextest.Count(t, s, nil); n.Scheduled+n.InTransit != uint64(stored+101) {
		t.Errorf("opened again, counts are %+v; want %d", n, stored+101)
	}
	if err := errors.Join(s.Check(), s.Close()); err != nil {
		t.Error(err)
	}
}

// untilFull calls do until it fails because the disk is full, and returns how often it succeeded before.
// io.EOF means that there was nothing to do.
func untilFull(t *testing.T, do func() error, full func(error) bool) (succeeded int) {
	t.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; {
		switch err := do(); {
		case err == nil:
			succeeded++
		case full(err):
			return succeeded
		case !errors.Is(err, io.EOF):
			t.Fatalf("%v; want an error that says that the disk is full", err)
		}
	}
	t.Fatal("no call fails for a minute while the disk is full")
	return 0
}

func isFull(err error) bool { return err != nil && strings.Contains(err.Error(), "is full") }

var errFail = errors.New("a put is acknowledged with FAIL")

func isFail(err error) bool { return errors.Is(err, errFail) }

func putLong(t *testing.T, s *disk.Store, from, n int) error {
	t.Helper()
	var p docindex.Puts
	noise := make([]byte, 3500)
	for i := range n {
		fill := fmt.Appendf(noise[:0], "http://h%d.test/%d/", i%10, from+i)
		random(noise[len(fill):], uint64(from+i))
		if err := p.AddExact(docindex.Put{URL: noise, Due: docindex.Now},
			fmt.Appendf(nil, "h%d.test", i%10)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.Put(t.Context(), &p)
	for i := range n {
		if settled := p.Verdict(i) == docindex.New; settled != (err == nil) {
			t.Fatalf("Put: %v, and URL %d is %v", err, i, p.Verdict(i))
		}
	}
	return err
}

// random fills b with bytes that do not compress well.
func random(b []byte, seed uint64) {
	x := seed*0x9E3779B97F4A7C15 + 1
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = '!' + byte(x%90)
	}
}

// keepFull writes a file that takes the space that is left, also what compactions free, until empty removes
// it. It leaves at least 256 KiB.
func keepFull(t *testing.T, path string) (empty func()) {
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	const leaves = 256 << 10
	fill := func() {
		for piece := make([]byte, leaves); ; {
			usage, err := vfs.Default.GetDiskUsage(path)
			if err != nil || usage.AvailBytes < 2*leaves {
				return
			}
			if _, err := f.Write(piece); err != nil {
				return
			}
		}
	}
	fill()
	stop := make(chan struct{})
	var filler sync.WaitGroup
	filler.Go(func() {
		for tick := time.Tick(time.Millisecond); ; {
			select {
			case <-stop:
				return
			case <-tick:
				fill()
			}
		}
	})
	empty = sync.OnceFunc(func() {
		close(stop)
		filler.Wait()
		if err := errors.Join(f.Close(), os.Remove(path)); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(empty)
	return empty
}

// serveFrontier serves a store by gRPC.
func serveFrontier(t *testing.T, s docindex.Store) pb.URLFrontierClient {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f, err := frontier.New(frontier.Config{Settings: configs.Default().Frontier, Store: s, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Serve(ctx, l) }()
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return pb.NewURLFrontierClient(conn)
}

// ackOf puts one URL. It returns errFail if the acknowledgement says so.
func ackOf(t *testing.T, client pb.URLFrontierClient) error {
	t.Helper()
	stream, err := client.PutURLs(t.Context())
	if err != nil {
		return err
	}
	item := &pb.URLItem{Item: &pb.URLItem_Discovered{
		Discovered: &pb.DiscoveredURLItem{Info: &pb.URLInfo{Url: "http://grpc.test/"}},
	}}
	if err := errors.Join(stream.Send(item), stream.CloseSend()); err != nil {
		return err
	}
	switch ack, err := stream.Recv(); {
	case err != nil:
		return err
	case ack.Status == pb.AckMessage_FAIL:
		return errFail
	case ack.Status != pb.AckMessage_OK:
		return fmt.Errorf("a put is acknowledged with %v", ack.Status)
	}
	return nil
}

// getOne gets one URL, and returns the error of the call, or io.EOF if none comes.
func getOne(t *testing.T, client pb.URLFrontierClient) error {
	t.Helper()
	stream, err := client.GetURLs(t.Context(), &pb.GetParams{MaxQueues: 1, MaxUrlsPerQueue: 1})
	if err != nil {
		return err
	}
	_, err = stream.Recv()
	return err
}
