package main

import (
	"strings"
	"testing"
)

const events = `{"Action":"start","Package":"a"}
{"Action":"run","Package":"a","Test":"TestGood"}
{"Action":"output","Package":"a","Test":"TestGood","Output":"chatter\n"}
{"Action":"pass","Package":"a","Test":"TestGood"}
{"Action":"run","Package":"a","Test":"TestSkipped"}
{"Action":"output","Package":"a","Test":"TestSkipped","Output":"=== RUN   TestSkipped\n"}
{"Action":"output","Package":"a","Test":"TestSkipped","Output":"    x_test.go:7: redis-server is not installed: 1 thing\n"}
{"Action":"output","Package":"a","Test":"TestSkipped","Output":"--- SKIP: TestSkipped (0.00s)\n"}
{"Action":"skip","Package":"a","Test":"TestSkipped"}
{"Action":"output","Package":"a","Output":"PASS\n"}
{"Action":"output","Package":"a","Output":"ok  \ta\t0.1s\n"}
{"Action":"pass","Package":"a"}
`

const failure = `{"Action":"run","Package":"b","Test":"TestBad"}
{"Action":"output","Package":"b","Test":"TestBad","Output":"    y_test.go:9: wrong\n"}
{"Action":"fail","Package":"b","Test":"TestBad"}
{"Action":"output","Package":"b","Output":"FAIL\tb\t0.1s\n"}
{"Action":"fail","Package":"b"}
`

// crash is a package whose process ends while tests run: go test -json says nothing of their ends.
const crash = `{"Action":"run","Package":"c","Test":"TestWaits"}
{"Action":"output","Package":"c","Test":"TestWaits","Output":"=== RUN   TestWaits\n"}
{"Action":"output","Package":"c","Test":"TestWaits","Output":"=== PAUSE TestWaits\n"}
{"Action":"pause","Package":"c","Test":"TestWaits"}
{"Action":"run","Package":"c","Test":"TestDies"}
{"Action":"output","Package":"c","Test":"TestDies","Output":"=== RUN   TestDies\n"}
{"Action":"run","Package":"c","Test":"TestDies/sub"}
{"Action":"output","Package":"c","Test":"TestDies/sub","Output":"=== RUN   TestDies/sub\n"}
{"Action":"output","Package":"c","Test":"TestDies/sub","Output":"panic: of a goroutine\n"}
{"Action":"output","Package":"c","Output":"FAIL\tc\t0.1s\n"}
{"Action":"fail","Package":"c"}
`

func TestRun(t *testing.T) {
	for _, c := range []struct {
		name, in       string
		status         int
		want, wantNone []string
	}{
		{name: "passed", in: events, want: []string{"ok  \ta\t0.1s\n",
			"\nSkipped:\n  redis-server is not installed: 1 thing\n    a.TestSkipped\n",
			"2 tests, 0 failed, 1 skipped"}, wantNone: []string{"chatter", "=== RUN"}},
		{name: "failed", in: events + failure, status: 1,
			want: []string{"y_test.go:9: wrong\n", "FAIL\tb\t0.1s\n", "3 tests, 1 failed"}},
		{name: "crashed", in: events + crash, status: 1,
			want: []string{"panic: of a goroutine\n--- FAIL: TestDies/sub (it did not end)\n",
				"--- FAIL: TestDies (it did not end)\nFAIL\tc\t0.1s\n", "4 tests, 2 failed"},
			wantNone: []string{"TestWaits"}},
		{name: "nothing ran", in: "", status: 1},
		{name: "build failed",
			in: events + `{"ImportPath":"c","Action":"build-output","Output":"c.go:1: syntax\n"}` + "\n" +
				`{"ImportPath":"c","Action":"build-fail"}`, status: 1, want: []string{"c.go:1: syntax"}},
		{name: "other words", in: events + "go: downloading x\n", want: []string{"go: downloading x\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			status, err := run(strings.NewReader(c.in), &out)
			if status != c.status || err != nil {
				t.Errorf("status %d, error %v; want %d", status, err, c.status)
			}
			for _, want := range c.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("output %q; want %q in it", &out, want)
				}
			}
			for _, none := range c.wantNone {
				if strings.Contains(out.String(), none) {
					t.Errorf("output %q; want no %q", &out, none)
				}
			}
		})
	}
}
