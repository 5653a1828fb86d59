// Counter-based random bits, made on the device from a key.
// modes: streams
func.func @main(%key: tensor<2xi64>) -> (tensor<2xi64>, tensor<70xi32>) {
  %state, %bits = stablehlo.rng_bit_generator %key, algorithm = THREE_FRY : (tensor<2xi64>) -> (tensor<2xi64>, tensor<70xi32>)
  return %state, %bits : tensor<2xi64>, tensor<70xi32>
}
