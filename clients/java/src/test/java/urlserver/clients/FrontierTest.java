package urlserver.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import crawlercommons.urlfrontier.URLFrontierGrpc;
import crawlercommons.urlfrontier.URLFrontierGrpc.URLFrontierBlockingStub;
import crawlercommons.urlfrontier.URLFrontierGrpc.URLFrontierStub;
import crawlercommons.urlfrontier.Urlfrontier.AckMessage;
import crawlercommons.urlfrontier.Urlfrontier.Active;
import crawlercommons.urlfrontier.Urlfrontier.BlockQueueParams;
import crawlercommons.urlfrontier.Urlfrontier.CountUrlParams;
import crawlercommons.urlfrontier.Urlfrontier.CrawlLimitParams;
import crawlercommons.urlfrontier.Urlfrontier.DeleteCrawlMessage;
import crawlercommons.urlfrontier.Urlfrontier.Empty;
import crawlercommons.urlfrontier.Urlfrontier.GetParams;
import crawlercommons.urlfrontier.Urlfrontier.ListUrlParams;
import crawlercommons.urlfrontier.Urlfrontier.Local;
import crawlercommons.urlfrontier.Urlfrontier.LogLevelParams;
import crawlercommons.urlfrontier.Urlfrontier.Pagination;
import crawlercommons.urlfrontier.Urlfrontier.QueueDelayParams;
import crawlercommons.urlfrontier.Urlfrontier.QueueWithinCrawlParams;
import crawlercommons.urlfrontier.Urlfrontier.Stats;
import crawlercommons.urlfrontier.Urlfrontier.URLInfo;
import crawlercommons.urlfrontier.Urlfrontier.URLItem;
import crawlercommons.urlfrontier.Urlfrontier.URLStatusRequest;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.StreamObserver;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The published stubs against a daemon that was started as the service in Java is. */
class FrontierTest {
    @TempDir Path dir;
    private Daemon daemon;
    private ManagedChannel channel;
    private URLFrontierBlockingStub blocking;
    private URLFrontierStub async;

    @BeforeEach
    void start() throws Exception {
        daemon = new Daemon(0, Map.of(), "-h", "frontier", "rocksdb.path=" + dir.resolve("rocksdb"));
        channel = daemon.channel();
        blocking = URLFrontierGrpc.newBlockingStub(channel).withDeadlineAfter(5, TimeUnit.MINUTES);
        async = URLFrontierGrpc.newStub(channel);
    }

    @AfterEach
    void end() throws Exception {
        channel.shutdownNow();
        daemon.close();
    }

    private List<URLInfo> get(GetParams.Builder params) {
        List<URLInfo> all = new ArrayList<>();
        blocking.getURLs(params.build()).forEachRemaining(all::add);
        return all;
    }

    private Stats stats(String key) {
        return blocking.getStats(QueueWithinCrawlParams.newBuilder().setKey(key).setCrawlID("c").build());
    }

    @Test
    void putGetAcknowledge() throws Exception {
        URLItem first = Urls.discovered("http://a.example/1", "c");
        Map<String, AckMessage.Status> acks = Urls.put(async, List.of(first,
                Urls.discovered("http://a.example/2", "c"), Urls.discovered("http://b.example/1", "c")));
        assertEquals(Map.of("http://a.example/1", AckMessage.Status.OK, "http://a.example/2",
                AckMessage.Status.OK, "http://b.example/1", AckMessage.Status.OK), acks);
        assertEquals(AckMessage.Status.SKIPPED, Urls.put(async, List.of(first)).get("http://a.example/1"));

        List<URLInfo> given = get(GetParams.newBuilder().setMaxUrlsPerQueue(1).setDelayRequestable(600));
        assertEquals(2, given.size(), "one URL of each queue");
        URLInfo ofA = given.stream().filter(i -> i.getKey().equals("a.example")).findFirst().orElseThrow();
        assertEquals("http://a.example/1", ofA.getUrl());
        assertEquals("c", ofA.getCrawlID());
        assertEquals("1", ofA.getMetadataOrThrow("depth").getValues(0));
        assertEquals(1, stats("a.example").getInProcess());

        List<URLItem> done = given.stream().map(Urls::fetched).toList();
        assertEquals(Set.of(AckMessage.Status.OK), new HashSet<>(Urls.put(async, done).values()));
        Stats after = stats("");
        assertEquals(1, after.getSize(), "what is not fetched");
        assertEquals(2, after.getCountsOrThrow("completed"));
        assertEquals(0, after.getInProcess());
    }

    @Test
    void controlOfQueues() throws Exception {
        Urls.put(async, List.of(Urls.discovered("http://a.example/1", "c"),
                Urls.discovered("http://a.example/2", "c"), Urls.discovered("http://b.example/1", "c")));
        assertTrue(blocking.listNodes(Empty.getDefaultInstance()).getValues(0).startsWith("frontier:"));
        assertEquals(List.of("c"), blocking.listCrawls(Local.getDefaultInstance()).getValuesList());
        assertEquals(Set.of("a.example", "b.example"), new HashSet<>(blocking.listQueues(
                Pagination.newBuilder().setCrawlID("c").setSize(10).setIncludeInactive(true).build()).getValuesList()));
        blocking.setDelay(QueueDelayParams.newBuilder().setKey("a.example").setCrawlID("c").setDelayRequestable(2).build());
        blocking.setCrawlLimit(CrawlLimitParams.newBuilder().setKey("a.example").setCrawlID("c").setLimit(10).build());
        blocking.setLogLevel(LogLevelParams.newBuilder().setPackage("x").setLevel(LogLevelParams.Level.WARN).build());
        blocking.blockQueueUntil(BlockQueueParams.newBuilder().setKey("b.example").setCrawlID("c")
                .setTime(System.currentTimeMillis() / 1000 + 3600).build());
        List<URLInfo> given = get(GetParams.newBuilder().setMaxUrlsPerQueue(5).setDelayRequestable(600));
        assertEquals(2, given.size(), "b.example is blocked");

        blocking.setActive(Active.newBuilder().setState(false).build());
        assertFalse(blocking.getActive(Local.getDefaultInstance()).getState());
        assertTrue(get(GetParams.newBuilder().setKey("b.example")).isEmpty());
        blocking.setActive(Active.newBuilder().setState(true).build());
        assertTrue(blocking.getActive(Local.getDefaultInstance()).getState());
    }

    @Test
    void lookingAndDeleting() throws Exception {
        Urls.put(async, List.of(Urls.discovered("http://a.example/1", "c"),
                Urls.discovered("http://a.example/2", "c"), Urls.discovered("http://b.example/1", "c")));
        assertEquals(3, blocking.countURLs(CountUrlParams.newBuilder().setCrawlID("c").build()).getValue());
        List<URLItem> listed = new ArrayList<>();
        blocking.listURLs(ListUrlParams.newBuilder().setCrawlID("c").setKey("a.example").build())
                .forEachRemaining(listed::add);
        assertEquals(2, listed.size());
        assertEquals("http://b.example/1", blocking.getURLStatus(URLStatusRequest.newBuilder()
                .setUrl("http://b.example/1").setKey("b.example").setCrawlID("c").build()).getKnown().getInfo().getUrl());
        StatusRuntimeException unknown = assertThrows(StatusRuntimeException.class, () -> blocking.getURLStatus(
                URLStatusRequest.newBuilder().setUrl("http://b.example/9").setKey("b.example").setCrawlID("c").build()));
        assertEquals(Status.Code.NOT_FOUND, unknown.getStatus().getCode());
        assertEquals(2, blocking.deleteQueue(
                QueueWithinCrawlParams.newBuilder().setKey("a.example").setCrawlID("c").build()).getValue());
        assertEquals(1, blocking.deleteCrawl(DeleteCrawlMessage.newBuilder().setValue("c").build()).getValue());
        assertEquals(0, blocking.countURLs(CountUrlParams.newBuilder().setCrawlID("c").build()).getValue());
    }

    /** StormCrawler's bolt keeps a stream open, and puts what has no answer once more when it breaks. */
    @Test
    void aKilledDaemonLosesNothing() throws Exception {
        List<URLItem> items = new ArrayList<>();
        for (int i = 0; i < 1000; i++) {
            items.add(Urls.discovered("http://h" + i % 10 + ".example/" + i, "c"));
        }
        Urls.Acks before = new Urls.Acks();
        StreamObserver<URLItem> stream = async.putURLs(before);
        items.forEach(stream::onNext);
        while (before.byID.size() < 500) {
            Thread.sleep(1);
        }
        daemon.kill();
        assertThrows(Exception.class, () -> before.ended.get(5, TimeUnit.MINUTES), "the stream ends with the daemon");
        URLFrontierStub waiting = async.withWaitForReady();
        try (Daemon again = new Daemon(daemon.port, Map.of(), "rocksdb.path=" + dir.resolve("rocksdb"))) {
            Map<String, AckMessage.Status> acks = Urls.put(waiting, items);
            assertEquals(1000, acks.size());
            before.byID.forEach((id, status) -> assertEquals(AckMessage.Status.SKIPPED, acks.get(id),
                    id + " was acknowledged before"));
            assertEquals(1000, blocking.countURLs(CountUrlParams.newBuilder().setCrawlID("c").build()).getValue());
            assertEquals(0, again.stop());
        }
    }

    /** Who comes from a network that is not allowed gets nothing, and nothing of it is stored. */
    @Test
    void otherNetworksAreRefused() throws Exception {
        Map<String, String> elsewhere = Map.of("URLSERVER_FRONTIER_ALLOW_FROM", "10.0.0.0/8");
        try (Daemon closed = new Daemon(0, elsewhere, "rocksdb.path=" + dir.resolve("closed"))) {
            ManagedChannel refused = closed.channel();
            StatusRuntimeException e = assertThrows(StatusRuntimeException.class,
                    () -> URLFrontierGrpc.newBlockingStub(refused).withDeadlineAfter(1, TimeUnit.MINUTES)
                            .getActive(Local.getDefaultInstance()));
            assertEquals(Status.Code.UNAVAILABLE, e.getStatus().getCode());
            refused.shutdownNow();
        }
    }
}
