"""P against Q: the global test, the gate, the local test, calibration and the trust panel."""
