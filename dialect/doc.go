// Package dialect has one Store for each database, its migrations, and the queries of operators.
package dialect
