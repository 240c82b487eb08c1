package protocol

import (
	"math"
	"testing"
)

func TestTransThereAndBack(t *testing.T) {
	for _, c := range []struct {
		name  string
		trans Trans
		want  string
	}{
		{name: "zeros", trans: Trans{}, want: "0.0.0"},
		{name: "usual", trans: Trans{Slot: 4095, Active: 3, Generation: 17}, want: "4095.3.17"},
		{
			name:  "largest",
			trans: Trans{Slot: math.MaxUint32, Active: math.MaxUint32, Generation: math.MaxUint32},
			want:  "4294967295.4294967295.4294967295",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			id := AppendTrans([]byte("x"), c.trans)
			if got := string(id[1:]); got != c.want || len(got) > maxTrans {
				t.Errorf("AppendTrans(%+v) = %q; want %q, at most %d bytes", c.trans, got, c.want, maxTrans)
			}
			if got, ok := ParseTrans([]byte(c.want)); !ok || got != c.trans {
				t.Errorf("ParseTrans(%q) = %+v, %v; want %+v", c.want, got, ok, c.trans)
			}
		})
	}
}

// One transaction has one TRANS_ID: other spellings of the numbers are not it.
func TestParseTransIsStrict(t *testing.T) {
	for _, id := range []string{
		"", ".", "..", "1", "1.2", "1.2.", ".1.2", "1..2", "1.2.3.4", "1.2.3.", "+1.2.3", "-1.2.3",
		"1.-2.3", "01.2.3",
		"1.00.3", "1.2.03", "1.2.4294967296", "4294967296.0.0", "1.99999999999999999999999999.3", "0x1.2.3",
		"1_0.2.3",
		" 1.2.3", "1.2.3 ", "1.2.3\r", "1,2,3", "1.2.a", "١.2.3", "1.2.3\x00",
	} {
		if got, ok := ParseTrans([]byte(id)); ok || got != (Trans{}) {
			t.Errorf("ParseTrans(%q) = %+v, %v; want no transaction", id, got, ok)
		}
	}
}
