// Declares what exercise un-broadcast provides.
#pragma once
#include "matrix.hpp"

// dy is the gradient of a result of dy.rows x dy.columns. An operand of rows x columns was broadcast to it: rows is
// dy.rows or 1, columns is dy.columns or 1. Returns the gradient of the operand, in the operand's shape.
Matrix un_broadcast(const Matrix& dy, int rows, int columns);
HAND_IN(un_broadcast);
