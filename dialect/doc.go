// Package dialect is what the databases share: the classes of their faults, the states of a schema, the order in which a
// settlement is tried, and what people see of an outbox. Each engine has a package of its own below, with the same names in
// the same files: postgres, mysql (MariaDB too) and sqlite.
package dialect
