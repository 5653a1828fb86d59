"""Uses an emulated GPU, then asks for another worker."""

import hipr

hipr.use()
try:
    hipr.use("127.0.0.1:1")
except hipr.Error as why:
    print(why)
