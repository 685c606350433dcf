// Package health is the kernel of the health checks: checks and their results, the wait until all checks pass, and the report at
// its end. What is checked is in the packages below it: gate, workloads and handover. None of them connects to anything: package
// observe reads the cluster, and cmd/slipway-probe connects the two. The Pulumi program imports these packages for their specs, so
// they import neither client-go nor the Talos client.
package health
