package configs

import "testing"

func TestShown(t *testing.T) {
	c := Default()
	c.QueueLen = 7
	c.HTTP.Token = "secret"
	want := map[string]Shown{
		"Queue_Len":    {Name: "Queue_Len", Value: "7", Live: true},
		"Queue_Count":  {Name: "Queue_Count", Value: "4096", Default: true},
		"http.token":   {Name: "http.token", Value: `"***"`},
		"spider.token": {Name: "spider.token", Value: `""`, Default: true},
	}
	for _, got := range c.Shown() {
		if w, ok := want[got.Name]; ok && got != w {
			t.Errorf("got %+v; want %+v", got, w)
		}
		delete(want, got.Name)
	}
	if len(want) > 0 {
		t.Errorf("not shown: %v", want)
	}
}
