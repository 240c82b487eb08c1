package reservation_test

import (
	"strings"
	"testing"

	pb "urlserver/api/reservation"
)

// TestSchema holds the service to the names, numbers and types that clients in other languages are
// made from.
func TestSchema(t *testing.T) {
	file := pb.File_api_reservation_reservation_proto
	service := file.Services().ByName("HostReservation")
	if service.FullName() != "hostreservation.HostReservation" {
		t.Errorf("service is %s", service.FullName())
	}
	var methods []string
	for i := range service.Methods().Len() {
		m := service.Methods().Get(i)
		if m.IsStreamingClient() || m.IsStreamingServer() {
			t.Errorf("%s is not unary", m.Name())
		}
		methods = append(methods, string(m.Name())+"("+string(m.Input().Name())+")"+string(m.Output().Name()))
	}
	if got, want := strings.Join(methods, " "),
		"AddHost(AddHostRequest)AddHostResponse DeleteHost(DeleteHostRequest)Empty SetAlias(Alias)Empty "+
			"GetAlias(HostRequest)Alias ReserveNextHost(ReserveNextHostRequest)ReserveNextHostResponse "+
			"TryReserve(TryReserveRequest)Reservation "+
			"ExtendHost(ExtendHostRequest)ExtendHostResponse ReleaseHost(ReleaseHostRequest)Empty "+
			"Bind(BindRequest)BindResponse "+
			"Stats(Empty)StatsResponse Explain(HostRequest)ExplainResponse JoinAlias(Alias)BindResponse"; got != want {
		t.Errorf("methods\n%s\nwant\n%s", got, want)
	}
	want := map[string]string{
		"Empty": "", "HostRequest": "host:string", "AddHostRequest": "host:string earliest_ms:int64",
		"AddHostResponse":   "added:bool",
		"DeleteHostRequest": "host:string token:uint64 next_ms:int64", "Alias": "alias:string hosts:string*",
		"ReserveNextHostRequest":  "lease_ms:int64 max:uint32 holder:string",
		"ReserveNextHostResponse": "reservations:message*",
		"TryReserveRequest":       "host:string lease_ms:int64 holder:string",
		"Reservation":             "host:string group:string token:uint64 lease_end_ms:int64",
		"ExtendHostRequest":       "host:string token:uint64 lease_ms:int64",
		"ExtendHostResponse":      "lease_end_ms:int64",
		"ReleaseHostRequest":      "host:string token:uint64 next_ms:int64", "Binding": "host:string group:string",
		"BindRequest": "bindings:message* ttl_ms:int64", "BindResponse": "groups:string* left_ms:int64*",
		"StatsResponse":   "hosts:uint64 waiting:uint64 ready:uint64 busy:uint64 aliases:uint64 repaired:uint64",
		"ExplainResponse": "host:string group:string state:string until_ms:int64 rule:string holder:string",
	}
	for i := range file.Messages().Len() {
		m := file.Messages().Get(i)
		var fields []string
		for j := range m.Fields().Len() { // in order of declaration
			f := m.Fields().Get(j)
			if int(f.Number()) != j+1 {
				t.Errorf("%s.%s has number %d; want %d", m.Name(), f.Name(), f.Number(), j+1)
			}
			star := ""
			if f.IsList() {
				star = "*"
			}
			fields = append(fields, string(f.Name())+":"+f.Kind().String()+star)
		}
		name := string(m.Name())
		if expected, known := want[name]; !known || strings.Join(fields, " ") != expected {
			t.Errorf("%s has %q; want %q", name, fields, expected)
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("there is no message %s", name)
	}
}
