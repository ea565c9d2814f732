import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.HiveMetaStoreClient;
import org.apache.hadoop.hive.metastore.api.Database;
import org.apache.hadoop.hive.metastore.api.FieldSchema;
import org.apache.hadoop.hive.metastore.api.SerDeInfo;
import org.apache.hadoop.hive.metastore.api.StorageDescriptor;
import org.apache.hadoop.hive.metastore.api.Table;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf.ConfVars;
import org.apache.hadoop.hive.metastore.security.HadoopThriftAuthBridge;

/**
 * Hive's metastore over Derby: PORT, a DIR for its database and warehouse, and a FILE with a line for each table, its
 * database, name and metadata file separated by tabs. Once they are registered it writes DIR/ready.
 */
public class Metastore {
  public static void main(String[] args) throws Exception {
    int port = Integer.parseInt(args[0]);
    String dir = args[1];
    Configuration conf = MetastoreConf.newMetastoreConf();
    MetastoreConf.setVar(conf, ConfVars.CONNECT_URL_KEY, "jdbc:derby:" + dir + "/metastore;create=true");
    MetastoreConf.setVar(conf, ConfVars.CONNECTION_DRIVER, "org.apache.derby.jdbc.EmbeddedDriver");
    MetastoreConf.setVar(conf, ConfVars.WAREHOUSE, dir + "/hive");
    MetastoreConf.setVar(conf, ConfVars.WAREHOUSE_EXTERNAL, dir + "/hive");
    MetastoreConf.setBoolVar(conf, ConfVars.AUTO_CREATE_ALL, true);
    MetastoreConf.setBoolVar(conf, ConfVars.SCHEMA_VERIFICATION, false);
    MetastoreConf.setVar(conf, ConfVars.THRIFT_BIND_HOST, "127.0.0.1");
    MetastoreConf.setLongVar(conf, ConfVars.SERVER_PORT, port);
    MetastoreConf.setVar(conf, ConfVars.THRIFT_URIS, "");
    Thread server =
        new Thread(
            () -> {
              try {
                HiveMetaStore.startMetaStore(port, HadoopThriftAuthBridge.getBridge(), conf);
              } catch (Throwable e) {
                e.printStackTrace();
                System.exit(1);
              }
            });
    server.start();
    Configuration own = new Configuration(conf);
    MetastoreConf.setVar(own, ConfVars.THRIFT_URIS, "thrift://127.0.0.1:" + port);
    MetastoreConf.setLongVar(own, ConfVars.THRIFT_CONNECTION_RETRIES, 60);
    HiveMetaStoreClient client = new HiveMetaStoreClient(own);
    List<String[]> tables = new ArrayList<>();
    TreeSet<String> databases = new TreeSet<>();
    for (String line : Files.readAllLines(Path.of(args[2]))) {
      String[] table = line.split("\t");
      tables.add(table);
      databases.add(table[0]);
    }
    for (String name : databases) {
      client.createDatabase(new Database(name, "", new File(dir, "hive/" + name).toURI().toString(), Map.of()));
    }
    for (String[] t : tables) {
      Table table = new Table();
      table.setDbName(t[0]);
      table.setTableName(t[1]);
      table.setTableType("EXTERNAL_TABLE");
      table.setParameters(Map.of("EXTERNAL", "TRUE", "table_type", "ICEBERG", "metadata_location", t[2]));
      table.setPartitionKeys(List.of());
      StorageDescriptor sd = new StorageDescriptor();
      sd.setCols(List.of(new FieldSchema("id", "bigint", "")));
      sd.setLocation(new File(dir, "hive/" + t[0] + "/" + t[1]).toURI().toString());
      sd.setSerdeInfo(new SerDeInfo());
      table.setSd(sd);
      client.createTable(table);
    }
    Files.createFile(Path.of(dir, "ready"));
    server.join();
  }
}
