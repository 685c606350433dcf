// Package fakecluster is a cluster for tests, on ports of the loopback interface: the part of the Kubernetes API and of the Talos API that
// a probe calls. It is not production code. Objects are those that a test puts in. Scheduling, controllers, validation and authorisation
// beyond one token are not modelled; exec has only the WebSocket protocol.
package fakecluster
