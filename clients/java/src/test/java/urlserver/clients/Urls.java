package urlserver.clients;

import crawlercommons.urlfrontier.URLFrontierGrpc.URLFrontierStub;
import crawlercommons.urlfrontier.Urlfrontier.AckMessage;
import crawlercommons.urlfrontier.Urlfrontier.DiscoveredURLItem;
import crawlercommons.urlfrontier.Urlfrontier.KnownURLItem;
import crawlercommons.urlfrontier.Urlfrontier.StringList;
import crawlercommons.urlfrontier.Urlfrontier.URLInfo;
import crawlercommons.urlfrontier.Urlfrontier.URLItem;
import io.grpc.stub.StreamObserver;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/** Items to put, and a stream that puts them. */
final class Urls {
    private Urls() {}

    static URLItem discovered(String url, String crawl) {
        URLInfo info = URLInfo.newBuilder().setUrl(url).setCrawlID(crawl)
                .putMetadata("depth", StringList.newBuilder().addValues("1").build()).build();
        return URLItem.newBuilder().setID(url)
                .setDiscovered(DiscoveredURLItem.newBuilder().setInfo(info)).build();
    }

    /** Reports a URL as fetched, never to be fetched again. */
    static URLItem fetched(URLInfo info) {
        return URLItem.newBuilder().setID(info.getUrl())
                .setKnown(KnownURLItem.newBuilder().setInfo(info).setRefetchableFromDate(0)).build();
    }

    /** Puts items, and returns the status of each by its ID when the server has ended the stream. */
    static Map<String, AckMessage.Status> put(URLFrontierStub stub, List<URLItem> items) throws Exception {
        Acks acks = new Acks();
        StreamObserver<URLItem> out = stub.putURLs(acks);
        items.forEach(out::onNext);
        out.onCompleted();
        acks.ended.get(5, TimeUnit.MINUTES);
        return acks.byID;
    }

    /** Acks collects the answers of a stream. */
    static final class Acks implements StreamObserver<AckMessage> {
        final Map<String, AckMessage.Status> byID = new ConcurrentHashMap<>();
        final CompletableFuture<Void> ended = new CompletableFuture<>();

        @Override
        public void onNext(AckMessage ack) {
            byID.put(ack.getID(), ack.getStatus());
        }

        @Override
        public void onError(Throwable t) {
            ended.completeExceptionally(t);
        }

        @Override
        public void onCompleted() {
            ended.complete(null);
        }
    }
}
