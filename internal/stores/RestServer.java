import java.net.InetSocketAddress;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.jdbc.JdbcCatalog;
import org.apache.iceberg.rest.RESTCatalogAdapter;
import org.apache.iceberg.rest.RESTCatalogServlet;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

/** Iceberg's test server for its REST API, on loopback alone: PORT, and a DIR for its database. */
public class RestServer {
  public static void main(String[] args) throws Exception {
    JdbcCatalog catalog = new JdbcCatalog();
    catalog.setConf(new Configuration());
    catalog.initialize(
        "icefs",
        Map.of(
            "uri", "jdbc:sqlite:" + args[1] + "/rest.db",
            "jdbc.schema-version", "V1",
            "warehouse", args[1] + "/warehouse"));
    ServletContextHandler context = new ServletContextHandler();
    context.addServlet(
        new ServletHolder(new RESTCatalogServlet(new RESTCatalogAdapter(catalog))), "/*");
    Server server = new Server(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])));
    server.setHandler(context);
    server.start();
    server.join();
  }
}
