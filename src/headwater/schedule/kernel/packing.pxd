cdef int SCALARS, SIZE

cpdef void load(double[::1] state, const double[::1] scalars, const unsigned short[::1] grains) except *
cpdef void store(double[::1] state, double[::1] scalars, unsigned short[::1] grains) except *
