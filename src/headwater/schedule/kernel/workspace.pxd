cdef class Workspace:
    cdef public double[::1] weights, rates, sums, hour, mix, times, counts, moments, costs, clocks, out
    cdef public long[::1] hull
