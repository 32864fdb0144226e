// A simple matrix for exercises that write an engine's backward functions.
#pragma once

#include "exercise.hpp"

// Stored row by row. at(i, j) throws if an index is out of range.
struct Matrix {
    int rows = 0, columns = 0;
    std::vector<double> values;

    Matrix(int r, int c, std::vector<double> v) : rows(r), columns(c), values(std::move(v)) {}
    Matrix(int r, int c) : Matrix(r, c, std::vector<double>(static_cast<std::size_t>(r * c))) {}

    double& at(int i, int j) {
        check(i, j);
        return values[static_cast<std::size_t>(i * columns + j)];
    }
    double at(int i, int j) const {
        check(i, j);
        return values[static_cast<std::size_t>(i * columns + j)];
    }
    std::string shape() const { return std::to_string(rows) + " x " + std::to_string(columns); }

private:
    void check(int i, int j) const {
        if (i < 0 || i >= rows || j < 0 || j >= columns)
            throw std::out_of_range("at(" + std::to_string(i) + ", " + std::to_string(j) +
                                    ") of a matrix of " + shape());
    }
};

inline Matrix transposed(const Matrix& a) {
    Matrix result(a.columns, a.rows);
    for (int i = 0; i < a.rows; ++i)
        for (int j = 0; j < a.columns; ++j) result.at(j, i) = a.at(i, j);
    return result;
}

inline Matrix product(const Matrix& a, const Matrix& b) {
    if (a.columns != b.rows)
        throw std::invalid_argument("product: inner sizes differ: " + a.shape() + " times " + b.shape());
    Matrix result(a.rows, b.columns);
    for (int i = 0; i < a.rows; ++i)
        for (int j = 0; j < b.columns; ++j)
            for (int k = 0; k < a.columns; ++k) result.at(i, j) += a.at(i, k) * b.at(k, j);
    return result;
}
