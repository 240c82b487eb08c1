package crawlcontrol_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"urlserver/crawlcontrol"
)

// goodURL is the members of a good request.
const goodURL = `"url":"http://a.test/","appid":"testapp","crawlid":"c"`

// deepList is nested more deeply than encoding/json bears.
var deepList = strings.Repeat(`[`, 60_000) + strings.Repeat(`]`, 60_000)

// badRequests are requests that are refused, with a part of the error and whom the refusal names.
var badRequests = []struct{ name, message, err, app, uuid string }{
	{name: "nothing", message: "", err: "not a JSON object"},
	{name: "not JSON", message: "stop!", err: "not a JSON object"},
	{name: "a list", message: "[]", err: "not a JSON object"},
	{name: "a word", message: "null", err: "not a JSON object"},
	{name: "a text", message: `"action"`, err: "not a JSON object"},
	{name: "empty", message: "{}", err: "neither"},
	{name: "more behind it", message: infoText + "{}", err: "something follows"},
	{name: "a byte order mark", message: "\ufeff" + infoText, err: "not a JSON object"},
	{name: "not UTF-8", message: "{\"action\":\"info\",\"appid\":\"test\xffapp\"}", err: "UTF-8"},
	{name: "10 MB", message: `{"url":"` + strings.Repeat("x", 10<<20) + `"}`, err: "at most 131072"},
	{name: "deep", message: `{` + goodURL + `,"attrs":` + deepList + `}`, err: "not a JSON object"},
	{name: "deep in an object", message: `{` + goodURL + `,"attrs":` + strings.Repeat(`{"a":`, 9000) +
		"1" + strings.Repeat(`}`, 9000) + `}`, err: "more than 8000", app: "testapp"},
	{name: "action of another sort", message: `{"action":7,"appid":"testapp","uuid":"u"}`,
		err: "action: 7", app: "testapp", uuid: "u"},
	{name: "unknown action", message: `{"action":"expire","appid":"testapp","uuid":"u"}`,
		err: `action: "expire"`, app: "testapp", uuid: "u"},
	{name: "action in another case",
		message: `{"Action":"info","appid":"testapp","uuid":"u","spiderid":"link"}`, err: "neither",
		app: "testapp", uuid: "u"},
	{name: "unknown field",
		message: `{"action":"info","appid":"testapp","uuid":"u","spiderid":"link","x":1}`,
		err:     `no field "x"`, app: "testapp", uuid: "u"},
	{name: "field of the other sort",
		message: `{"action":"info","appid":"testapp","uuid":"u","spiderid":"link","url":"http://a.test/"}`,
		err:     `no field "url"`, app: "testapp", uuid: "u"},
	{name: "field in another case", message: `{` + goodURL + `,"Priority":1}`, err: `no field "Priority"`,
		app: "testapp"},
	{name: "twice", message: `{` + goodURL + `,"appid":"testapp"}`, err: `"appid" twice`},
	{name: "uuid missing", message: `{"action":"info","appid":"testapp","spiderid":"link"}`,
		err: "uuid is missing", app: "testapp"},
	{name: "uuid null", message: `{"action":"info","appid":"testapp","spiderid":"link","uuid":null}`,
		err: "uuid: is not a string", app: "testapp"},
	{name: "uuid empty", message: `{"action":"info","appid":"testapp","spiderid":"link","uuid":""}`,
		err: "has 0 characters", app: "testapp"},
	{name: "uuid long", message: `{"action":"info","appid":"testapp","spiderid":"link","uuid":"` +
		strings.Repeat("é", 41) + `"}`, err: "has 41 characters", app: "testapp"},
	{name: "spiderid missing", message: `{"action":"info","appid":"testapp","uuid":"u"}`,
		err: "spiderid is missing", app: "testapp", uuid: "u"},
	{name: "appid short", message: `{"action":"info","appid":"ab","spiderid":"link","uuid":"u"}`,
		err: "appid: has 2", uuid: "u"},
	{name: "appid a number", message: `{"action":"info","appid":123,"spiderid":"link","uuid":"u"}`,
		err: "appid: is not a string", uuid: "u"},
	{name: "priority 0", message: `{` + goodURL + `,"priority":0}`, err: "priority: 0 is out of range",
		app: "testapp"},
	{name: "priority 101", message: `{` + goodURL + `,"priority":101}`, err: "out of range", app: "testapp"},
	{name: "priority a fraction", message: `{` + goodURL + `,"priority":1.5}`, err: "not a whole number",
		app: "testapp"},
	{name: "priority a text", message: `{` + goodURL + `,"priority":"1"}`, err: "not a whole number",
		app: "testapp"},
	{name: "priority huge", message: `{` + goodURL + `,"priority":1e400}`, err: "not a whole number",
		app: "testapp"},
	{name: "expires huge", message: `{` + goodURL + `,"expires":` + strings.Repeat("9", 5000) + `}`,
		err: "out of range", app: "testapp"},
	{name: "expires before 1970", message: `{` + goodURL + `,"expires":-1}`, err: "out of range",
		app: "testapp"},
	{name: "maxdepth", message: `{` + goodURL + `,"maxdepth":101}`, err: "out of range", app: "testapp"},
	{name: "list of numbers", message: `{` + goodURL + `,"deny_regex":[1]}`, err: "not a list of strings",
		app: "testapp"},
	{name: "list with null", message: `{` + goodURL + `,"deny_regex":[null]}`,
		err: "not a list of strings", app: "testapp"},
	{name: "long list", message: `{` + goodURL + `,"deny_regex":["",` + strings.Repeat(`"",`, 1000) +
		`""]}`, err: "has 1002", app: "testapp"},
	{name: "attrs a list", message: `{` + goodURL + `,"attrs":[]}`, err: "not an object", app: "testapp"},
	{name: "metadata too long", message: `{` + goodURL + `,"attrs":{"a":"` + strings.Repeat("x", 8000) +
		`"}}`, err: "more than 8000", app: "testapp"},
	{name: "url of another scheme", message: `{"url":"ftp://a.test/","appid":"testapp","crawlid":"c"}`,
		err: "ftp", app: "testapp"},
	{name: "url relative", message: `{"url":"/x","appid":"testapp","crawlid":"c"}`, err: "/x",
		app: "testapp"},
	{name: "crawlid long", message: `{"url":"http://a.test/","appid":"testapp","crawlid":"` +
		strings.Repeat("c", 41) + `"}`, err: "crawlid: has 41", app: "testapp"},
}

func TestBadRequests(t *testing.T) {
	for _, c := range badRequests {
		t.Run(c.name, func(t *testing.T) {
			_, err := crawlcontrol.Parse([]byte(c.message))
			r, ok := errors.AsType[*crawlcontrol.Refusal](err)
			if !ok || !strings.Contains(r.Error(), c.err) || r.App != c.app || r.UUID != c.uuid {
				t.Errorf("Parse: %+v, %v; want %q of app %q, uuid %q", r, err, c.err, c.app, c.uuid)
			}
			if len(err.Error()) > 1000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			wantAnswered(t, []byte(c.message))
		})
	}
}

// wantAnswered checks that any message gets exactly one reply, which is JSON.
func wantAnswered(t *testing.T, message []byte) {
	t.Helper()
	replies, done, err := crawlcontrol.New(&fakeCrawls{}, 10).Do(t.Context(), [][]byte{message})
	if err != nil || done != 1 || len(replies) != 1 {
		t.Fatalf("%.200q: %d replies, %d done, %v", message, len(replies), done, err)
	}
	var body map[string]any
	if err := json.Unmarshal(replies[0].Body, &body); err != nil || !utf8.Valid(replies[0].Body) {
		t.Errorf("%.200q: reply %q: %v", message, replies[0].Body, err)
	}
	if replies[0].Refused != (body["error"] != nil) {
		t.Errorf("%.200q: refused %v, reply %s", message, replies[0].Refused, replies[0].Body)
	}
}

func FuzzDo(f *testing.F) {
	for _, text := range []string{infoText, stopText, string(crawl("a")), "{}", `{"url":1}`,
		`{"action":{"a":[]}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, message []byte) { wantAnswered(t, message) })
}

// Parse takes what the published schema allows and nothing else: a small validator of the schema is
// its model.
func TestParseAgreesWithSchema(t *testing.T) {
	var s struct{ OneOf []schema }
	if err := json.Unmarshal(crawlcontrol.Schema(), &s); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	taken := 0
	for range 50_000 {
		message := someMessage(r)
		var v map[string]any
		in := json.NewDecoder(strings.NewReader(message))
		in.UseNumber()
		if err := in.Decode(&v); err != nil {
			t.Fatalf("%s: %v", message, err)
		}
		fits := 0
		for i := range s.OneOf {
			if s.OneOf[i].allows(v) {
				fits++
			}
		}
		_, err := crawlcontrol.Parse([]byte(message))
		if (err == nil) != (fits == 1) || fits > 1 {
			t.Fatalf("%s fits %d shapes; Parse: %v", message, fits, err)
		}
		if err == nil {
			taken++
		}
	}
	if taken < 1000 {
		t.Errorf("only %d of 50000 messages were good: the test tests too little", taken)
	}
}

var (
	someNames = strings.Fields("action appid uuid spiderid crawlid url priority maxdepth expires " +
		"allowed_domains useragent attrs domain_max_pages other")
	someGood = map[string]string{
		"action": `"info"`, "appid": `"testapp"`, "uuid": `"u"`, "spiderid": `"link"`, "crawlid": `"c"`,
		"url":      `"http://a.test/"`,
		"priority": "5", "maxdepth": "1", "expires": "9", "allowed_domains": `["a"]`, "useragent": `"x"`,
		"attrs": `{"a":1}`, "domain_max_pages": "3",
	}
	someBad = []string{`null`, `""`, `"ab"`, `"stop"`, `0`, `-1`, `101`, `1.5`, `[]`, `[1]`, `{}`, `true`,
		`"` + strings.Repeat("x", 41) + `"`, `99999999999999999999`}
)

// someMessage is one of the three sorts with a few changes.
func someMessage(r *rand.Rand) string {
	base := [][]string{{"action", "appid", "uuid", "spiderid"},
		{"action", "appid", "uuid", "spiderid", "crawlid"}, {"url", "appid", "crawlid"}}[r.IntN(3)]
	fields := map[string]string{}
	for _, name := range base {
		fields[name] = someGood[name]
	}
	for range r.IntN(4) {
		name := someNames[r.IntN(len(someNames))]
		switch good, ok := someGood[name]; {
		case r.IntN(4) == 0:
			delete(fields, name)
		case ok && r.IntN(2) == 0:
			fields[name] = good
		case name != "url": // which URLs are good, the schema does not say
			fields[name] = someBad[r.IntN(len(someBad))]
		}
	}
	var parts []string
	for name, v := range fields {
		parts = append(parts, fmt.Sprintf("%q:%s", name, v))
	}
	return "{" + strings.Join(parts, ",") + "}"
}
