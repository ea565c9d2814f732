import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.DefaultPartitionExpressionProxy;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.HiveMetaStoreClient;
import org.apache.hadoop.hive.metastore.api.Database;
import org.apache.hadoop.hive.metastore.api.SerDeInfo;
import org.apache.hadoop.hive.metastore.api.StorageDescriptor;
import org.apache.hadoop.hive.metastore.api.Table;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf.ConfVars;
import org.apache.hadoop.hive.metastore.security.HadoopThriftAuthBridge;

/**
 * A Hive metastore with its database in memory, on loopback alone: PORT, and a DIR for what it
 * writes. DIR/tables has a line for each table: database, name and location of the metadata, with
 * tabs between; an empty location is a table that is not one of Iceberg. When they are registered,
 * DIR/ready is written.
 */
public class HiveServer {
  public static void main(String[] args) throws Exception {
    Path dir = Path.of(args[1]);
    System.setProperty("derby.stream.error.file", dir.resolve("derby.log").toString());
    Configuration conf = MetastoreConf.newMetastoreConf();
    MetastoreConf.setVar(conf, ConfVars.CONNECT_URL_KEY, "jdbc:derby:memory:metastore;create=true");
    MetastoreConf.setVar(conf, ConfVars.CONNECTION_DRIVER, "org.apache.derby.jdbc.EmbeddedDriver");
    MetastoreConf.setBoolVar(conf, ConfVars.AUTO_CREATE_ALL, true);
    MetastoreConf.setBoolVar(conf, ConfVars.SCHEMA_VERIFICATION, false);
    MetastoreConf.setVar(conf, ConfVars.THRIFT_BIND_HOST, "127.0.0.1");
    MetastoreConf.setVar(conf, ConfVars.WAREHOUSE, dir.resolve("managed").toUri().toString());
    MetastoreConf.setVar(conf, ConfVars.WAREHOUSE_EXTERNAL, dir.resolve("external").toUri().toString());
    // The default one is a class of Hive itself.
    MetastoreConf.setVar(
        conf, ConfVars.EXPRESSION_PROXY_CLASS, DefaultPartitionExpressionProxy.class.getName());
    int port = Integer.parseInt(args[0]);
    Thread registers = new Thread(() -> register(conf, port, dir));
    registers.setDaemon(true);
    registers.start();
    try {
      HiveMetaStore.startMetaStore(port, HadoopThriftAuthBridge.getBridge(), conf);
    } catch (Throwable e) {
      e.printStackTrace();
      System.exit(1);
    }
  }

  private static void register(Configuration server, int port, Path dir) {
    try {
      Configuration conf = new Configuration(server);
      MetastoreConf.setVar(conf, ConfVars.THRIFT_URIS, "thrift://127.0.0.1:" + port);
      MetastoreConf.setLongVar(conf, ConfVars.THRIFT_CONNECTION_RETRIES, 60);
      List<String> lines = Files.readAllLines(dir.resolve("tables"));
      HiveMetaStoreClient client = new HiveMetaStoreClient(conf);
      TreeSet<String> databases = new TreeSet<>();
      for (String line : lines) {
        String[] table = line.split("\t", -1);
        if (databases.add(table[0])) {
          client.createDatabase(new Database(table[0], "", null, Map.of()));
        }
        client.createTable(table(table[0], table[1], table[2]));
      }
      client.close();
      Files.createFile(dir.resolve("ready"));
    } catch (Exception e) {
      e.printStackTrace();
      System.exit(1);
    }
  }

  private static Table table(String database, String name, String metadata) {
    StorageDescriptor storage = new StorageDescriptor();
    storage.setCols(List.of());
    storage.setSerdeInfo(new SerDeInfo(name, "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", Map.of()));
    Table t = new Table();
    t.setDbName(database);
    t.setTableName(name);
    t.setOwner("icefs");
    t.setSd(storage);
    t.setPartitionKeys(List.of());
    t.setTableType("EXTERNAL_TABLE");
    t.setParameters(
        new java.util.HashMap<>(
            metadata.isEmpty()
                ? Map.of("EXTERNAL", "TRUE")
                : Map.of(
                    "EXTERNAL", "TRUE", "table_type", "ICEBERG", "metadata_location", metadata)));
    return t;
  }
}
