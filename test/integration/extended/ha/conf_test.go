//go:build linux

package ha_test

// password is the password of all roles.
const password = "secret"

// patroniConf takes these values: the node's name, the port of its REST API, the port of its connection to etcd,
// whether replication is synchronous, PostgreSQL's port, the node's folder, the folder of PostgreSQL's programs, the
// password, and the version of etcd's API. The times are the shortest that Patroni accepts, except retry_timeout,
// because the machine may be busy.
const patroniConf = `scope: sqlfence
name: %[1]s
restapi: {listen: '127.0.0.1:%[2]s', connect_address: '127.0.0.1:%[2]s'}
%[9]s: {host: '127.0.0.1:%[3]s', use_proxies: true}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 2
    retry_timeout: 8
    maximum_lag_on_failover: 1048576
    synchronous_mode: %[4]t
    postgresql:
      use_pg_rewind: true
      parameters: {max_connections: 150, wal_log_hints: on, wal_keep_size: 128MB}
  initdb: [encoding: UTF8, locale: C, auth: password, no-sync]
postgresql:
  listen: 127.0.0.1:%[5]s
  connect_address: 127.0.0.1:%[5]s
  data_dir: %[6]s/data
  bin_dir: %[7]s
  pgpass: %[6]s/pgpass
  remove_data_directory_on_rewind_failure: true
  remove_data_directory_on_diverged_timelines: true
  authentication:
    superuser: {username: sqlfence, password: %[8]s}
    replication: {username: replicator, password: %[8]s}
  parameters:
    unix_socket_directories: ''
    shared_buffers: 32MB
    fsync: off
    authentication_timeout: 10min
    password_encryption: md5
    log_min_messages: fatal
  pg_hba:
  - host all all 127.0.0.1/32 md5
  - host replication all 127.0.0.1/32 md5
`
