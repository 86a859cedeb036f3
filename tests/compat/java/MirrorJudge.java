import java.time.Duration;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

/** What Java's own client of mirrors makes of ours: target, source, group. */
public class MirrorJudge {
    public static void main(String[] words) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", words[0]);
        System.out.println("upstream " + new TreeSet<>(RemoteClusterUtils.upstreamClusters(settings)));
        System.out.println("hops " + RemoteClusterUtils.replicationHops(settings, words[1]));
        System.out.println("heartbeats " + new TreeSet<>(RemoteClusterUtils.heartbeatTopics(settings)));
        System.out.println("checkpoints " + new TreeSet<>(RemoteClusterUtils.checkpointTopics(settings)));
        Map<TopicPartition, OffsetAndMetadata> offsets =
                RemoteClusterUtils.translateOffsets(settings, words[1], words[2], Duration.ofSeconds(60));
        Map<String, Long> found = new TreeMap<>();
        offsets.forEach((at, offset) -> found.put(at.toString(), offset.offset()));
        System.out.println("offsets " + found);
    }
}
