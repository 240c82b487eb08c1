package resolver

import (
	"net"
	"net/netip"
	"strconv"
	"sync"
	"testing"
)

// quickServer answers every A question with an address and every other question with nothing, on
// loopback over UDP, as cheaply as possible.
func quickServer(b *testing.B) string {
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		b.Fatal(err)
	}
	conn.SetReadBuffer(4 << 20)
	var done sync.WaitGroup
	done.Go(func() {
		buf := make([]byte, 2048)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			conn.WriteToUDPAddrPort(quickAnswer(buf[:n]), from)
		}
	})
	b.Cleanup(func() {
		conn.Close()
		done.Wait()
	})
	return conn.LocalAddr().String()
}

// quickAnswer turns a query of one question and an OPT record into its answer, in place.
func quickAnswer(q []byte) []byte {
	end := headerLen
	for q[end] != 0 {
		end += int(q[end]) + 1
	}
	end += 5
	q[2], q[3] = 0x81, 0x80
	q[11] = 0 // no OPT record
	if q[end-3] != 1 {
		return q[:end]
	}
	q[7] = 1
	return append(q[:end], 0xc0, headerLen, 0, 1, 0, 1, 0, 0, 1, 0, 0, 4, 93, 184, 216, 34)
}

// BenchmarkLookup looks up distinct names, A and AAAA each, from a server in the same process.
func BenchmarkLookup(b *testing.B) {
	r, err := New(Config{Servers: []string{quickServer(b)}, HostsFile: "-"})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	var pending sync.WaitGroup
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		pending.Add(1)
		r.Resolve("host"+strconv.Itoa(i)+".bench.example", func(a netip.Addr, err error) {
			if err != nil {
				b.Error(err)
			}
			pending.Done()
		})
		if i%4096 == 4095 {
			pending.Wait()
		}
	}
	pending.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lookups/s")
	s := r.Stats()
	b.Logf("timeouts %d, strays %d, window %d", s.Timeouts, s.Strays, s.Window)
}

// BenchmarkCached asks for cached names in turn: as many as fit in the processor's caches, and many
// more.
func BenchmarkCached(b *testing.B) {
	for _, hosts := range []int{1 << 10, 1 << 16, 1 << 20} {
		b.Run(strconv.Itoa(hosts), func(b *testing.B) { benchCached(b, hosts) })
	}
}

func benchCached(b *testing.B, hosts int) {
	r, err := New(Config{HostsFile: "-"})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	names := make([][]byte, hosts)
	for i := range names {
		names[i] = []byte("host" + strconv.Itoa(i) + ".bench.example")
		r.cache.put(names[i], kindAddr, netip.AddrFrom4([4]byte{93, 184, 216, 34}), 1<<50, r.now())
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err, ok := r.Cached(names[i&(hosts-1)]); err != nil || !ok {
			b.Fatal("not remembered: ", err)
		}
	}
}
