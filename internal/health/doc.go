// Package health is the kernel of the health checks: checks and their results, the wait until all checks pass, and the report at
// its end. What is checked is in the packages below it, and in flux/handover. None of them connects to anything: package
// observe reads the cluster, and cmd/probe connects the two. So a check is tested with observations alone.
package health
