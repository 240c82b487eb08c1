package urlfrontier_test

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"urlserver/api/urlfrontier"
)

// TestNumbers holds the fields that clients send most to their numbers, and the service to its
// name.
func TestNumbers(t *testing.T) {
	file := urlfrontier.File_api_urlfrontier_urlfrontier_proto
	service := file.Services().ByName("URLFrontier")
	if service == nil || service.FullName() != "urlfrontier.URLFrontier" || service.Methods().Len() != 19 {
		t.Fatalf("service is %v; want urlfrontier.URLFrontier with 19 methods", service)
	}
	for name, want := range map[protoreflect.FullName]protoreflect.FieldNumber{
		"urlfrontier.GetParams.max_urls_per_queue":       1,
		"urlfrontier.GetParams.anyCrawlID":               5,
		"urlfrontier.GetParams.crawlID":                  6,
		"urlfrontier.URLInfo.metadata":                   3,
		"urlfrontier.URLInfo.crawlID":                    4,
		"urlfrontier.KnownURLItem.refetchable_from_date": 2,
		"urlfrontier.URLItem.known":                      2,
		"urlfrontier.URLItem.ID":                         3,
		"urlfrontier.URLItem.creation_date":              4,
		"urlfrontier.AckMessage.status":                  2,
		"urlfrontier.DiscoveredBatch.items":              2,
		"urlfrontier.BatchAck.statuses":                  2,
		"urlfrontier.Stats.crawlID":                      5,
		"urlfrontier.QueueDelayParams.delay_requestable": 2,
		"urlfrontier.CountUrlParams.local":               5,
		"urlfrontier.PurgeUrlParams.days":                3,
	} {
		message := file.Messages().ByName(name.Parent().Name())
		field := message.Fields().ByName(name.Name())
		if field == nil || field.Number() != want {
			t.Errorf("%s is %v; want number %d", name, field, want)
		}
	}
}

// TestCodecsAgree writes by one codec and reads by the other.
func TestCodecsAgree(t *testing.T) {
	item := &urlfrontier.URLItem{
		ID: "7",
		Item: &urlfrontier.URLItem_Known{Known: &urlfrontier.KnownURLItem{
			RefetchableFromDate: 1 << 40,
			Info: &urlfrontier.URLInfo{
				Url: "http://a.test/", Key: "k", CrawlID: "c",
				Metadata: map[string]*urlfrontier.StringList{"m": {Values: []string{"v", ""}}},
			},
		}},
	}
	fast, err := item.MarshalVT()
	if err != nil {
		t.Fatal(err)
	}
	slow := new(urlfrontier.URLItem)
	if err := proto.Unmarshal(fast, slow); err != nil || !proto.Equal(item, slow) {
		t.Errorf("proto reads %v, %v; want %v", slow, err, item)
	}
	text, err := proto.Marshal(item)
	if err != nil {
		t.Fatal(err)
	}
	back := new(urlfrontier.URLItem)
	if err := back.UnmarshalVT(text); err != nil || !proto.Equal(item, back) {
		t.Errorf("vtproto reads %v, %v; want %v", back, err, item)
	}
}
